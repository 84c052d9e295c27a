"""The numbers to reach on two ordinary cores, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from benchmarks.rows import Row


@dataclass(frozen=True)
class Target:
    """`case` and `figure` are patterns (`*` is anything); every row they match must be on the right side of `number`."""

    what: str
    benchmark: str
    case: str
    figure: str
    sign: Literal["≥", "≤"]
    number: float


@dataclass(frozen=True)
class Verdict:
    """A target and the row that is worst for it; None if nothing of it was measured."""

    target: Target
    row: Row | None

    @property
    def word(self) -> str:
        """`met`, `missed` or `not measured`."""
        if self.row is None:
            return "not measured"
        reached = (
            self.row.value >= self.target.number if self.target.sign == "≥" else self.row.value <= self.target.number
        )
        return "met" if reached else "missed"


_FAST = "examples per second"
TARGETS = (
    Target("claims decided by the shipped records", "package", "claims of the papers", "decided *", "≥", 0.6),
    Target("the demo, in minutes", "package", "demo", "time", "≤", 5),
    Target("claims of the demo that are decided", "package", "demo", "claims decided", "≥", 1),
    Target("source lines", "package", "source", "lines", "≤", 42_000),
    Target("files that a small train passes through", "package", "source", "files *", "≤", 40),
    Target("torch.compile of every model: tests that fail", "package", "torch.compile*", "* failed *", "≤", 0),
    Target("host reads per step of every model: tests that fail", "package", "host reads *", "* failed *", "≤", 0),
    Target(
        "gCOG generator, 1–5 distractors",
        "generators",
        "gcog/productive coding=integer distractors=1-5 *iid/*",
        _FAST,
        "≥",
        200_000,
    ),
    Target(
        "gCOG generator, 40 distractors",
        "generators",
        "gcog/productive coding=integer distractors=40 *iid/*",
        _FAST,
        "≥",
        60_000,
    ),
    Target("retrieval generator, length 10", "generators", "retrieval/* length=10 *", _FAST, "≥", 200_000),
    Target("CTL++ variant A, 300 000 examples and all splits", "generators", "ctl/A * split=all", "seconds", "≤", 2),
    Target("rules generators, share of the step they feed", "generators", "rules/*", "share of a step *", "≤", 0.05),
    Target(
        "retrieval Transformer, batch 10, S = 20, over a plain loop",
        "steps",
        "retrieval-transformer batch=10",
        "speed-up S=20 over published",
        "≥",
        3,
    ),
    Target(
        "modular MLP, S = 20, over a plain loop of the same mathematics",
        "steps",
        "rules-mlp gating=joint width=32 rules=32 *",
        "speed-up S=20 over rewritten",
        "≥",
        1.6,
    ),
    Target(
        "modular MLP, S = 20, 32 rules, over naive grouped layers",
        "steps",
        "rules-mlp gating=joint width=32 rules=32 *",
        "speed-up S=20 over published",
        "≥",
        6,
    ),
    Target(
        "gCOG single-stream Transformer over the plain implementation",
        "steps",
        "gcog-single-stream *",
        "speed-up S=* over published",
        "≥",
        20,
    ),
    *(
        Target(f"{name}, share of the product rate", "steps", case, "best product share", "≥", share)
        for name, case, share in (
            ("MLP of width 128", "rules-mlp * width=128 *", 0.5),
            ("RNN of width 128", "rules-rnn * width=128 *", 0.5),
            ("NDR", "ctl-ndr *", 0.5),
            ("CTL++ Transformer", "ctl-transformer *", 0.5),
            ("BERT-like, 2 and 4 layers", "gcog-bert layers=[24] *", 0.5),
            ("retrieval Transformer", "retrieval-transformer *", 0.3),
            ("MLP of width 32", "rules-mlp * width=32 *", 0.3),
            ("RNN of width 32", "rules-rnn * width=32 *", 0.3),
            ("attention of width 32", "rules-mha *", 0.3),
        )
    ),
    Target("two worker processes against one", "workers", "*", "ratio, whole", "≥", 1.8),
    Target(
        "orchestration of 1 000 small trials, share of the time",
        "orchestration",
        "trials=1000 workers=2 S=10",
        "share",
        "≤",
        0.05,
    ),
    Target(
        "time, memory and writes per trial do not grow from 10 to 10 000 trials: exponent",
        "trials",
        "* over trials",
        "exponent",
        "≤",
        0.05,
    ),
    Target("alignment of a 1 024 × 1 024 activation matrix", "alignment", "alignment, * rules=1024", "time", "≤", 1000),
    Target(
        "the time that `unseen plan` says of mini studies is not too short",
        "estimate",
        "*@mini",
        "real over estimated time",
        "≤",
        1.3,
    ),
    Target(
        "the time that `unseen plan` says of mini studies is not too long",
        "estimate",
        "*@mini",
        "real over estimated time",
        "≥",
        0.7,
    ),
    Target(
        "2 048 simulated workers: how often the runner keeps up with them",
        "cluster",
        "workers=2048 *",
        "times the workers it keeps up with",
        "≥",
        1,
    ),
    Target("simulated cluster: trials lost", "cluster", "*", "trials lost", "≤", 0),
    Target(
        "simulated cluster: trials with a chunk missing or done twice",
        "cluster",
        "*",
        "trials with a chunk missing or done twice",
        "≤",
        0,
    ),
    Target("the start of `unseen --help`", "start", "unseen --help", "seconds", "≤", 0.3),
)


def judged(figures: Mapping[str, Sequence[Row]], targets: Sequence[Target] = TARGETS) -> list[Verdict]:
    """Every target with its worst row."""
    return [Verdict(target, _worst(target, figures.get(target.benchmark, ()))) for target in targets]


def _worst(target: Target, rows: Sequence[Row]) -> Row | None:
    found = [row for row in rows if fnmatchcase(row.case, target.case) and fnmatchcase(row.figure, target.figure)]
    pick = min if target.sign == "≥" else max
    return pick(found, key=lambda row: row.value, default=None)
