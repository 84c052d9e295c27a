"""From trials to records: plan, run and resume, on one machine or many.

The way of one training, to read it in order:

    api.train                           what is trained; all that can be refused is refused, before a store is made
    running.memory, training.preflight  does it fit the machine, and the model the task?
    store.store.Store.write             lock, database and tables; then the trials, as pending
    running.runner.run_entries          what is left to do; `stacks` groups it, `timing` says how large stacks pay
    running.chunk.Worker.do             one chunk of a stack, here (`executors.inline`) or on another machine
    training.trainer.Trainer.advance    step by step: `batches`, `stack.losses` (`loss`), `optimizer`; validations
    training.evaluate.evaluate          the best and the last weights on every split
    store.store.Store.commit            weights and checkpoints as files, then everything else in one transaction
    store.tables                        the tidy tables of `Runs`
"""
