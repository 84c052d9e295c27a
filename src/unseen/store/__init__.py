"""The store of a study on disk: records, weights, checkpoints."""
