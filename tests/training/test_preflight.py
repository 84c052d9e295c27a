"""Whatever does not fit is said before the first step, in words; what is odd is said, too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import unseen
from unseen.errors import UsageError
from unseen.models import MODELS
from unseen.running import chunk
from unseen.spec import Spec
from unseen.studies.grid import Grid
from unseen.studies.study import Study
from unseen.tasks.base import Task
from unseen.training import preflight
from unseen.training.preflight import check_model
from unseen.training.recipe import Recipe, recipe
from unseen.training.stack import Stack

Inputs = Mapping[str, Tensor]
T1 = unseen.task("retrieval/T1", length=5, train_size=500, evaluation_size=300)
CTL = unseen.task("ctl/A", symbols=4, functions=8, max_length=3, train_size=150, iid_size=40, ood_size=100)
RNN = unseen.task("rules/rnn", rules=2, dimension=4)


def fit(
    model: str | type[nn.Module], task: Task, used: Recipe | None = None, evaluation: unseen.Evaluation | None = None
) -> list[str]:
    chosen = unseen.model(model)
    return check_model(
        lambda: unseen.build(chosen, task.spec), task, used or recipe(), [evaluation or unseen.Evaluation()]
    )


class Sum(nn.Module):
    """Good on retrieval; what the others spoil."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.inner = nn.Linear(72, 8)
        self.answer = nn.Linear(8, 1)

    def hidden(self, inputs: Inputs) -> Tensor:
        return self.inner(torch.cat([inputs["sequence"].sum(1), inputs["query"]], -1)).relu()

    def forward(self, inputs: Inputs) -> Any:
        return self.answer(self.hidden(inputs))


class Flat(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return super().forward(inputs)[:, 0]


class Squeezed(Sum):
    """Right for any batch but one of a single example."""

    def forward(self, inputs: Inputs) -> Tensor:
        return super().forward(inputs).squeeze()[..., None]


class Double(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return super().forward(inputs).double()


class Whole(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return (super().forward(inputs) > 0).long()


class Pair(Sum):
    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        return super().forward(inputs), self.hidden(inputs)


class Named(Sum):
    def forward(self, inputs: Inputs) -> dict[str, Tensor]:
        return {"logits": super().forward(inputs)}


class Nothing(Sum):
    def forward(self, inputs: Inputs) -> None:
        super().forward(inputs)


class NotANumber(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return super().forward(inputs) / torch.zeros(()) * 0


class Lacking(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return inputs["tokens"]


class OwnKey(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return {}["sequence"]


class Unpacking(Sum):
    """Written for one tensor."""

    def forward(self, x: Tensor) -> Tensor:
        return self.answer(self.inner(x.sum(1)))


class Crashing(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return self.inner(inputs["sequence"])


class TimeFirst(Sum):
    """An LSTM that takes the batch for time."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.recurrence = nn.LSTM(36, 8)

    def hidden(self, inputs: Inputs) -> Tensor:
        return self.recurrence(inputs["sequence"])[0][:, -1]


class Backwards(Sum):
    """Every example knows of those after it."""

    def hidden(self, inputs: Inputs) -> Tensor:
        return super().hidden(inputs).flip(0).cumsum(0).flip(0)


class Centred(Sum):
    """Permuting the batch permutes the answers; still every example knows of the others."""

    def hidden(self, inputs: Inputs) -> Tensor:
        hidden = super().hidden(inputs)
        return hidden - hidden.mean(0)


class Random(Sum):
    """Dropout that does not know when to stop."""

    def hidden(self, inputs: Inputs) -> Tensor:
        return nn.functional.dropout(super().hidden(inputs), 0.5)


class Demanding(Sum):
    def forward(self, sequence: Tensor, query: Tensor) -> Tensor:
        return self.answer(sequence.sum(1) + query)


class Detached(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return super().forward(inputs).detach()


class Steep(Sum):
    """A finite loss whose gradient is not."""

    def hidden(self, inputs: Inputs) -> Tensor:
        return super().hidden(inputs).mul(0).sqrt()


class Endless(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        return super().forward(inputs) + math.inf


class Lazy(Sum):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.inner = nn.LazyLinear(8)


class Empty(nn.Module):
    def forward(self, inputs: Inputs) -> Tensor:
        return inputs["sequence"].sum((1, 2))[:, None]


class Drawn(Sum):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.gain = nn.Parameter(torch.from_numpy(np.random.default_rng().random(8, np.float32)))

    def hidden(self, inputs: Inputs) -> Tensor:
        return super().hidden(inputs) * self.gain


class DrawnBuffer(Sum):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.register_buffer("gain", torch.from_numpy(np.random.default_rng().random(8, np.float32)))


class Complex(Sum):
    """As state-space models are written; a cast to float32 would quietly drop the imaginary part."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.rate = nn.Parameter(torch.zeros(8, dtype=torch.complex64))

    def hidden(self, inputs: Inputs) -> Tensor:
        return super().hidden(inputs) * self.rate.real


class InTraining(Sum):
    def forward(self, inputs: Inputs) -> Tensor:
        if self.training:
            raise ArithmeticError("only in evaluation")
        return super().forward(inputs)


WRONG: dict[type[nn.Module], str] = {
    Flat: r"Flat on retrieval/T1, split train: the model's prediction has shape \(4,\); expected one tensor of "
    r"logits, float32 \(4, 1\) \(add the last dimension",
    Squeezed: r"has shape \(1,\); expected one tensor of logits, float32 \(1, 1\)",
    Double: r"is of type float64; expected one tensor of logits, float32 \(4, 1\)",
    Whole: "is of type int64; expected one tensor of logits",
    Pair: r"forward returned a tuple of 2 \(Tensor, Tensor\); expected one tensor of logits",
    Named: "forward returned a dict of logits; expected one tensor",
    Nothing: "forward returned nothing; expected one tensor",
    NotANumber: "the model answers NaN on 4 of 4 examples",
    Lacking: r": KeyError: 'tokens' is not an input of this task\. The inputs are a dict: sequence float32 \(4, 5, 36\)",
    OwnKey: "KeyError: 'sequence'. The inputs",
    Unpacking: "'dict' object has no attribute 'sum'. The inputs are a dict: sequence",
    Crashing: r"RuntimeError: mat1 and mat2 shapes.*The inputs are a dict: sequence float32 \(4, 5, 36\), query ",
    TimeFirst: "depends on the others in its batch. Inputs are batch first",
    Backwards: "depends on the others in its batch",
    Centred: "depends on the others in its batch",
    Random: "two calls on the same examples give different answers",
    Demanding: r"Demanding has forward\(sequence, query\); expected forward\(inputs\)",
    Detached: "no gradient reaches any parameter",
    Steep: r"the gradient of inner\.\w+ is not finite",
    Endless: "the loss of the untrained model is (inf|nan)",
    Lazy: r"inner\.weight has no shape before the first batch",
    Empty: "Empty has no parameters to train",
    Drawn: r"gain is not the same in two modules of one seed\. Give it values .*drawn by torch",
    DrawnBuffer: "gain is not the same in two modules of one seed",
    Complex: r"Complex: rate is complex; keep its real and imaginary part",
    InTraining: "in training: ArithmeticError: only in evaluation",
}


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_a_model_that_does_not_fit_is_refused_before_anything_is_written(kind: type[nn.Module], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=WRONG[kind]):
        unseen.train(T1, kind, seeds=1, out=tmp_path / "r", progress="none")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "kind",
    [
        Flat,
        Squeezed,
        Double,
        Whole,
        Pair,
        Named,
        Nothing,
        NotANumber,
        Lacking,
        Unpacking,
        Crashing,
        TimeFirst,
        Backwards,
        Centred,
        Random,
        Demanding,
    ],
    ids=lambda kind: kind.__name__,
)
def test_a_trained_module_that_does_not_fit_is_refused(kind: type[nn.Module]) -> None:
    with pytest.raises(UsageError, match=WRONG[kind].replace("split train", "split iid")):
        unseen.evaluate(kind(T1.spec), T1, examples=50)


def test_what_can_be_evaluated() -> None:
    torch.manual_seed(0)
    for module in (Sum(T1.spec), Sum(T1.spec).double(), Empty(), Detached(T1.spec), Complex(T1.spec)):
        before = [p.dtype for p in module.parameters()], module.training
        found = unseen.evaluate(module, T1, examples=50)
        assert np.isfinite(found[found.metric == "accuracy"].value).all()
        assert before == ([p.dtype for p in module.parameters()], module.training)
        assert all(p.requires_grad for p in module.parameters())
    with pytest.raises(UsageError, match=r"Sum is of type bfloat16; .* give module\.float\(\)"):
        unseen.evaluate(Sum(T1.spec).bfloat16(), T1, examples=50)
    remembering = Sum(T1.spec)
    remembering.last = remembering.inner(torch.ones(1, 72))
    with pytest.raises(UsageError, match=r"Sum can't be copied: .*Does it keep a tensor of an earlier forward pass"):
        unseen.evaluate(remembering, T1, examples=50)
    for wrong in (Sum, "lstm", None):
        with pytest.raises(UsageError, match="evaluate needs a module"):
            unseen.evaluate(wrong, T1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Did you mean 'ood/single'"):
        unseen.evaluate(Sum(T1.spec), T1, splits=["ood/singel"])


class Late(Sum):
    """NaN on few examples, none of them among the first."""

    def forward(self, inputs: Inputs) -> Tensor:
        answer = super().forward(inputs)
        return torch.where(inputs["sequence"].sum((1, 2))[:, None] > self.most, torch.nan, answer)


def test_nan_on_a_late_example_is_noticed_too() -> None:
    module, counts = Late(T1.spec), T1.sample("iid", 200, data_seed="test").inputs["sequence"].sum((1, 2))
    module.most = float(np.sort(counts[4:])[-2])
    assert (counts[:4] <= module.most).all() and (counts > module.most).any(), "choose other examples"
    with pytest.raises(UsageError, match="answers NaN on examples of split iid"):
        unseen.evaluate(module, T1, examples=200, splits=["iid"])


class Placed(nn.Module):
    """Learned positions for as many places as the spec says, in a user's own way."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.places = nn.Embedding(spec.streams[0].length, 4)
        self.answer = nn.Linear(8, spec.target.width)

    def forward(self, inputs: Inputs) -> Tensor:
        x = inputs["x"]
        places = self.places(torch.arange(x.shape[1])).expand(len(x), -1, -1)
        return self.answer(torch.cat([x, places], -1))


def test_sequences_longer_than_a_model_can_take_are_met_at_once(tmp_path: Path) -> None:
    longer = [name for name in RNN.splits if "length" in name]
    assert longer
    with pytest.raises(
        UsageError,
        match=r"Placed on rules/rnn, split ood/length=\d+.*: IndexError: index out of "
        r"range.*\(tokens has \d+ positions here, 10 in the spec\)",
    ):
        unseen.train(RNN, Placed, seeds=1, out=tmp_path / "r", progress="none")
    with pytest.raises(UsageError, match=r"split ood/length=\d+.*: positions 'learned' know 10 places"):
        unseen.train(RNN, unseen.model("transformer", width=8, positions="learned"), seeds=1, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
    # What is not evaluated need not be possible.
    fit(Placed, RNN, evaluation=unseen.Evaluation(splits=("iid",)))


class Rigid(nn.Module):
    """As many places as the spec says, no fewer."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.tokens = nn.Embedding(spec.field("token").width, 4)
        self.answer = nn.Linear(4 * spec.streams[0].length, spec.target.width)

    def forward(self, inputs: Inputs) -> Tensor:
        return self.answer(self.tokens(inputs["token"]).flatten(1))


def test_batches_by_length_are_shorter_than_the_examples() -> None:
    fit(Rigid, CTL)
    with pytest.raises(UsageError, match="Rigid on ctl/A, in training: RuntimeError: mat1 and mat2"):
        fit(Rigid, CTL, recipe(batches="lengths", batch=32))
    with pytest.raises(UsageError, match="use batches = shuffled"):
        fit(Sum, T1, recipe(batches="lengths"))


class Few(Rigid):
    """Too few classes: the loss would not notice before a rare one is asked for."""

    def forward(self, inputs: Inputs) -> Tensor:
        return super().forward(inputs)[:, :-1]


def test_the_number_of_classes_is_checked() -> None:
    with pytest.raises(UsageError, match=r"has shape \(4, 3\); expected one tensor of logits, float32 \(4, 4\)"):
        fit(Few, CTL)


class Idle(Sum):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.unused, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(8)

    def hidden(self, inputs: Inputs) -> Tensor:
        return self.norm(super().hidden(inputs))


def test_what_is_odd_is_said_and_noted() -> None:
    said = [
        "2 of 8 parameters get no gradient: unused.weight, unused.bias",
        "batch normalisation: in training the answer to an example depends on its batch",
    ]
    assert fit(Idle, T1) == said
    assert fit(Sum, T1) == []
    with pytest.raises(UsageError, match="in training: ValueError: Expected more than 1 value per channel"):
        fit(Idle, T1, recipe(batch=1))
    with pytest.warns(UserWarning) as caught:
        runs = unseen.train(
            T1,
            Idle,
            seeds=2,
            steps=4,
            batch=10,
            validate_every=2,
            validation_examples=20,
            evaluation=unseen.Evaluation(examples=50),
            progress="none",
        )
    warned = [str(w.message) for w in caught]
    assert [text for text in warned if "test_preflight:Idle" in text] == [f"test_preflight:Idle: {s}" for s in said]
    assert all(set(said) <= set(note.split("; ")) for note in runs.trials.note)


class Keeping(Sum):
    def forward(self, inputs: Inputs, ctx: Any) -> Tensor:
        ctx.capture("decoder.attention", torch.softmax(inputs["sequence"].sum(-1), -1))
        return super().forward(inputs)


def test_an_analysis_without_its_trace_is_refused_by_name(tmp_path: Path) -> None:
    asked = unseen.Evaluation(examples=50, analyses=("R1", "R2"))
    small: dict[str, Any] = {"seeds": 1, "steps": 2, "batch": 10, "validation_examples": 20, "progress": "none"}
    said = (
        r"the analysis R1 needs the activations decoder\.attention, which Sum does not capture\. Capture them by "
        r"x = ctx\.capture\('decoder\.attention', x\) in forward\(inputs, ctx\)"
    )
    with pytest.raises(UsageError, match=said):
        unseen.train(T1, Sum, evaluation=asked, out=tmp_path / "r", **small)
    assert not (tmp_path / "r").exists()
    with pytest.raises(UsageError, match=said):
        unseen.evaluate(Sum(T1.spec), T1, examples=50, analyses=["R1"])
    with pytest.raises(UsageError, match=r"specialization needs the activations gating\.weights"):
        unseen.train(RNN, Taking, evaluation=unseen.Evaluation(analyses=("specialization",)), **small)
    runs = unseen.train(T1, Keeping, evaluation=asked, **small)
    assert any(runs.table.metric.str.startswith("R1/")) and runs.activations(n=5, keep=["decoder.attention"])
    other_task = unseen.Evaluation(examples=50, analyses=("R2", "R7"))
    with pytest.raises(UsageError, match=r"the analysis R7 can't be made of retrieval/T1: it is about retrieval/T5, "):
        unseen.train(T1, Sum, evaluation=other_task, out=tmp_path / "r", **small)
    with pytest.raises(UsageError, match=r"the analysis R7 can't be made of retrieval/T1"):
        unseen.evaluate(Sum(T1.spec), T1, examples=50, analyses=["R7"])
    assert not (tmp_path / "r").exists()
    runs = unseen.train(T1, Sum, evaluation=unseen.Evaluation(examples=50, analyses=("R2",)), **small)
    with pytest.raises(UsageError, match=r"the model captures no 'encoder\.state'"):
        runs.activations(n=5, keep=["encoder.state"])


class Taking(nn.Module):
    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.answer = nn.Linear(4, spec.target.width)

    def forward(self, inputs: Inputs) -> Tensor:
        return self.answer(inputs["x"])


GCOG = unseen.task("gcog/distractor", grid=(4, 4), distractors=(1, 3), ood_distractors=(5,))
FITTING = {"retrieval": T1, "ctl": CTL, "gcog": GCOG}


@pytest.mark.parametrize("name", [entry.name for entry in MODELS if entry.target.startswith("unseen.")])
def test_nothing_is_odd_about_our_own_models(name: str) -> None:
    family, _, kind = name.partition("-")
    task = unseen.task(f"rules/{kind}") if family == "rules" else FITTING.get(family, T1)
    assert fit(name, task, evaluation=unseen.Evaluation(splits=(task.validation,))) == []


def test_the_dry_run_is_made_once_per_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen from inside: how often a few examples are answered one by one, outside of training and evaluation."""
    checked: list[str] = []
    check_answers = preflight.check_answers

    def counted(stack: Stack, task: Task, splits: Any, model: str, data_seed: Any = "test") -> None:
        checked.append(model)
        check_answers(stack, task, splits, model, data_seed)

    monkeypatch.setattr(preflight, "check_answers", counted)
    monkeypatch.setattr(chunk, "check_answers", counted)
    options = {"steps": 4, "batch": 10, "validation_examples": 20, "evaluation": unseen.Evaluation(examples=50)}
    for model in ("lstm", Sum):
        unseen.train(T1, model, seeds=3, stack=1, progress="none", **options)
    assert len(checked) == 2


def test_the_dry_run_is_made_once_per_shape_of_a_study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checked: list[str] = []
    check_trial = chunk.check_trial

    def counted(trial: Any, *rest: Any, **more: Any) -> list[str]:
        checked.append(trial.model.width)
        return check_trial(trial, *rest, **more)

    monkeypatch.setattr(chunk, "check_trial", counted)
    grid = Grid(
        axes={"width": {width: {"model": {"width": width}} for width in (4, 6)}},
        base={
            "task": {"name": "retrieval/T1", "length": 5, "train_size": 100, "evaluation_size": 60},
            "model": {"name": "lstm"},
            "recipe": {"steps": 4, "batch": 5, "validation_examples": 20},
            "evaluation": {"examples": 20},
        },
        seeds=range(4),
    )
    study = Study("widths", 1, "", {"smoke": None}, lambda scale: [grid])
    unseen.run(study, tmp_path / "store", executor="inline", stack=1, chunk_seconds=0.001, progress="none")
    assert sorted(checked) == [4, 6]
