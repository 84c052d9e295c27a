"""Every model of the zoo as it is trained: on which task, by which recipe, in stacks of which sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn

from benchmarks import plain_gcog, plain_rules
from benchmarks.plain_retrieval import PlainTransformer
from unseen.models import BACKBONES, options
from unseen.models.build import build
from unseen.tasks import task
from unseen.tasks.base import Task
from unseen.training.recipe import Recipe, recipe
from unseen.training.trainer import Job, Member, Trainer

SIZES = (1, 4, 16, 64)
TARGETED = (1, 4, 16, 20, 64)
"""With the size for which the design sets a target."""
NEVER = 10**9
"""A step that is never reached: nothing ends, nothing is validated."""


@dataclass(frozen=True)
class Case:
    """A model on a task. `options` (of the model) and `levels` (of the task) are in its name, `setting` is not: it
    changes no time.

    `published` are modules that somebody wrote by hand, by the name of their figure; they are called with the inputs
    named in `takes`, or with all of them.
    """

    model: str
    task: str
    recipe: str
    batch: int
    sizes: tuple[int, ...] = SIZES
    options: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, Any] = field(default_factory=dict)
    setting: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Callable[[], nn.Module]] = field(default_factory=dict)
    takes: tuple[str, ...] = ()
    quick: bool = False

    @property
    def name(self) -> str:
        """The model and what sets the case apart."""
        shown = {**self.options, **self.levels, "batch": self.batch}
        return " ".join([self.model, *(f"{key}={value}" for key, value in shown.items())])

    def make_task(self) -> Task:
        """The task, with the real generator behind it."""
        return task(self.task, **self.levels, **self.setting)

    def make_recipe(self) -> Recipe:
        """The recipe, without an end."""
        return recipe(self.recipe, batch=self.batch, steps=NEVER, validate_every=NEVER)

    def module(self, seed: int = 0) -> nn.Module:
        """A fresh module."""
        return build(options(self.model, **self.options), self.make_task().spec, seed)

    def trainer(self, members: int) -> Trainer:
        """A stack of this case, each member with data of its own."""
        made, used, chosen = self.make_task(), self.make_recipe(), options(self.model, **self.options)
        return Trainer(
            Job(
                made,
                lambda seed: build(chosen, made.spec, seed),
                tuple(Member(str(seed), seed, seed, used) for seed in range(members)),
            )
        )


def _retrieval() -> list[Case]:
    case = partial(Case, task="retrieval/T6", recipe="retrieval-paper", setting={"length": 10, "train_size": 20_000})
    return [
        *(
            case(
                "retrieval-transformer",
                batch=batch,
                sizes=TARGETED,
                quick=batch == 10,
                takes=("sequence", "query"),
                published={"published loop": PlainTransformer},
            )
            for batch in (10, 30, 100)
        ),
        case("retrieval-lstm", batch=10),
    ]


def _backbones() -> list[Case]:
    return [
        Case(name, "retrieval/T6", "quick", 100, setting={"length": 10, "train_size": 20_000}) for name in BACKBONES
    ]


_PLAIN_RULES: dict[str, Callable[..., nn.Module]] = {
    "mlp": plain_rules.PlainMLP,
    "mha": plain_rules.PlainMHA,
    "rnn": plain_rules.PlainRNN,
}


def _rules() -> list[Case]:
    grid = [
        *(("mlp", 32, count) for count in (2, 8, 32)),
        *((kind, 32, count) for kind in ("mha", "rnn") for count in (8, 32)),
        ("mlp", 128, 8),
        ("rnn", 128, 8),
    ]
    return [rules_case(kind, width, count, gating) for kind, width, count in grid for gating in ("none", "joint")]


def rules_case(kind: str, width: int, count: int, gating: str) -> Case:
    """Plain ones answer with every module and mix afterwards; `rewritten loop` is our mathematics in a plain loop."""
    plain = partial(_PLAIN_RULES[kind], gating=gating, rules=count, width=width)
    published: dict[str, Callable[[], nn.Module]] = {"published loop": plain}
    if kind == "mlp" and gating == "joint":
        published["rewritten loop"] = partial(plain, rewritten=True)
    return Case(
        f"rules-{kind}",
        f"rules/{kind}",
        f"rules-{kind}-paper",
        256,
        TARGETED if kind == "mlp" else SIZES,
        {"gating": gating, "width": width},
        {"rules": count},
        published=published,
        quick=(kind, width, count) == ("mlp", 32, 2),
    )


def _ctl() -> list[Case]:
    """Chains of five functions, the longest that are trained, so that every step is the same work."""
    setting = {"min_length": 5, "max_length": 5, "train_size": 8_192}
    return [
        Case(f"ctl-{name}", "ctl/A", f"ctl-{name}-paper", 512, setting=setting)
        for name in ("bilstm", "transformer", "ndr")
    ]


def _gcog() -> list[Case]:
    case = partial(Case, task="gcog/productive", recipe="gcog-productive-paper", batch=256, takes=("rule", "stimulus"))
    bert = partial(case, "gcog-bert", recipe="gcog-bert-paper", batch=64)

    def loop(model: Callable[..., nn.Module], **given: Any) -> dict[str, Callable[[], nn.Module]]:
        return {"published loop": partial(model, **given)}

    return [
        case("gcog-rnn", published=loop(plain_gcog.PlainRecurrent)),
        case("gcog-gru", published=loop(plain_gcog.PlainRecurrent, gated=True)),
        case("gcog-single-stream", published=loop(plain_gcog.PlainSingleStream)),
        case(
            "gcog-single-stream",
            options={"positions": "relative"},
            published=loop(plain_gcog.PlainSingleStream, relative=True),
        ),
        case("gcog-dual-stream", published=loop(plain_gcog.PlainDualStream)),
        case("gcog-cross-attention", published=loop(plain_gcog.PlainCrossAttention)),
        case("gcog-perceiver", published=loop(plain_gcog.PlainPerceiver)),
        *(
            bert(
                options={"layers": layers, "heads": heads},
                published=loop(plain_gcog.PlainBert, layers=layers, heads=heads),
            )
            for layers, heads in ((1, 1), (1, 8), (2, 8), (4, 8))
        ),
    ]


CASES = (*_retrieval(), *_rules(), *_ctl(), *_gcog(), *_backbones())


def case_of(name: str) -> Case:
    """The case of a name."""
    return next(case for case in CASES if case.name == name)
