"""The retrieval tasks T1–T7: did some features occur in a sequence, and in which order?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import ValidationInfo, field_validator, model_validator

from unseen.errors import UsageError
from unseen.randomness import Draws
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Artefact, Condition, Examples, Judgement, Shortcut, Task
from unseen.tasks.retrieval.artefacts import task_artefacts
from unseen.tasks.retrieval.ceilings import bit_count_ceiling, never_ceiling, one_feature_ceiling
from unseen.tasks.retrieval.generator import Plan, generate
from unseen.tasks.retrieval.judge import judge_file
from unseen.tasks.retrieval.mapping import PAIRS, Table, check_table, draw_released_table, draw_table, shares_feature
from unseen.tasks.retrieval.mapping_file import load_mapping
from unseen.tasks.retrieval.presets import LARGEST_EXCLUSION, PRESETS, Balance, PresetName
from unseen.tasks.retrieval.scenarios import scenarios
from unseen.tasks.retrieval.shortcuts import task_shortcuts
from unseen.tasks.retrieval.solver import solve_all
from unseen.tasks.retrieval.views import describe, picture

Name = Literal[
    "retrieval/T1", "retrieval/T2", "retrieval/T3", "retrieval/T4", "retrieval/T5", "retrieval/T6", "retrieval/T7"
]
Share = Annotated[float, Option(ge=0, le=1)]

_CONDITIONS = {
    c.name: c
    for c in (
        Condition("train", "training data: relevant features may occur again and again"),
        Condition("iid", "fresh examples distributed as the training data"),
        Condition(
            "ood/single",
            "the papers' validation and test: relevant features occur once. Nothing in it is "
            "unseen; the number of occurrences shifts",
        ),
    )
}
_SLOTS = {"T1": 1, "T2": 2, "T3": 2, "T4": 2, "T5": 4, "T6": 2, "T7": 4}


class Retrieval(Task):
    """A sequence of sets of features, then a query; the answer is yes or no.

    An id is opaque: which features it stands for is nowhere in the input, and has to be learned.

    | task | query | yes if |
    |---|---|---|
    | T1 | feature q | q occurs |
    | T2 | features a, b | a and b occur |
    | T3 | an id that stands for (a, b) | a or b occurs |
    | T4 | an id that stands for (a, b) | a and b occur |
    | T5 | an id that stands for (a, b), (c, d) | a and b occur, or c and d do |
    | T6 | an id that stands for (a, b) | a occurs in a token strictly before one with b |
    | T7 | an id that stands for (a, b), (c, d) | a before b, or c before d |

    With a query that stands for (22, 7), "22 before 7":

        {3, 22} {} {7, 30}     → yes
        {7} {1, 22} {3}        → no (wrong order)
        {4} {7, 22} {0}        → no (the same token does not count)

    The table behind the ids is drawn; preset `released` draws one with the measured wrinkles of the published table.
    """

    report_by: ClassVar[tuple[str, ...]] = ("scenario",)
    amounts: ClassVar[frozenset[str]] = frozenset({"train_size", "evaluation_size"})

    name: Name
    length: int = Option(10, ge=2, description="tokens of a sequence")
    preset: PresetName = Option(
        "clean", description="sound data, data as released, or data as the paper describes them"
    )
    features: int = Option(
        36, description="how many different features there are; with a query table, also how many query ids"
    )
    density: Share = Option(
        0.2, description="probability with which a feature that is neither relevant nor left out is in a token"
    )
    task_seed: int = Option(0, ge=0, description="draws the query table of T3 … T7")
    distinct_pairs: bool = Option(
        True, description="no pair stands twice in a table that is drawn (presets clean and paper)"
    )
    disjoint_within_query: bool = Option(
        True, description="the two pairs behind a query of T5 and T7 share no feature (presets clean and paper)"
    )
    exclusion_balance: Balance = Option(
        "blind",
        description="from whom it is hidden, as far as it can be, that negatives lack relevant features: "
        "from those who do not know which are relevant (blind), or from those who do (aware; "
        "preset clean)",
    )
    none_share: Share | None = Option(
        None,
        description="T6 and T7: of the negatives without wrong order, the share that shows neither feature of "
        "the pair; None: as the preset says",
    )
    mapping: Table | None = Option(
        None, description="the query table, or the path of a published file with one; None: drawn"
    )
    train_size: Annotated[int, Option(ge=1)] | None = Option(
        100_000, description="examples of the training set; None: endless"
    )
    evaluation_size: Annotated[int, Option(ge=1)] | None = Option(
        10_000, description="examples of every other condition; None: endless"
    )

    @field_validator("mapping", mode="before")
    @classmethod
    def _read_mapping(cls, value: object, info: ValidationInfo) -> object:
        """A published mapping file may be named by its path: what it says enters the config, not where it lies."""
        if isinstance(value, str | Path) and "features" in info.data and "name" in info.data:
            return load_mapping(value, info.data["name"].partition("/")[2], info.data["features"])
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        slots, mapped = _SLOTS[self.kind], self.kind in PAIRS
        if self.features < slots + LARGEST_EXCLUSION or (mapped and self.features % 2):
            even = "an even number, " if mapped else ""
            raise ValueError(f"features must be {even}at least {slots + LARGEST_EXCLUSION}; got {self.features}")
        if self.exclusion_balance == "aware" and self.preset != "clean":
            raise ValueError(f"exclusion_balance = aware belongs to the preset clean, not to {self.preset}")
        if self.none_share is not None and self.kind not in ("T6", "T7"):
            raise ValueError(f"none_share belongs to T6 and T7, not to {self.kind}")
        drawn = mapped and self.preset != "released" and self.mapping is None
        if not (self.distinct_pairs and self.disjoint_within_query) and not drawn:
            raise ValueError(
                "distinct_pairs and disjoint_within_query are about a query table that is drawn: "
                "T3 … T7, preset clean or paper, no mapping"
            )
        if self.mapping is not None:
            if not mapped:
                raise ValueError(f"{self.kind} has no query table; leave the mapping away")
            check_table(self.kind, self.mapping, self.features)
        return self

    @property
    def kind(self) -> str:
        """T1 … T7."""
        return self.name.partition("/")[2]

    @cached_property
    def table(self) -> Table:
        """The pairs behind each query id; empty for T1 and T2, whose queries name their features."""
        if self.mapping is not None:
            return self.mapping
        if self.kind not in PAIRS:
            return ()
        if self.preset == "released":
            return draw_released_table(self.kind, self.features, self.task_seed)
        return draw_table(
            self.kind,
            self.features,
            self.task_seed,
            distinct_pairs=self.distinct_pairs,
            disjoint_within_query=self.disjoint_within_query,
        )

    @cached_property
    def plan(self) -> Plan:
        """What the generator needs."""
        identity = np.eye(self.features, dtype=np.uint8)
        if self.kind == "T1":
            relevant, queries = np.arange(self.features)[:, None], identity
        elif self.kind == "T2":
            relevant = np.stack(np.triu_indices(self.features, 1), axis=1)
            queries = identity[relevant[:, 0]] | identity[relevant[:, 1]]
        else:
            relevant, queries = np.array(self.table).reshape(self.features, -1), identity
        none_share = PRESETS[self.preset].none_share if self.none_share is None else self.none_share
        return Plan(
            kind=self.kind,
            preset_name=self.preset,
            balance=self.exclusion_balance,
            length=self.length,
            features=self.features,
            density=self.density,
            scenarios=scenarios(self.kind, none_share),
            relevant=relevant,
            queries=queries,
        )

    @cached_property
    def spec(self) -> Spec:
        return Spec(
            (Stream("sequence", self.length),),
            (Field("sequence", "bits", self.features, "sequence"), Field("query", "bits", self.features)),
            Target("binary", 1),
        )

    @property
    def conditions(self) -> Mapping[str, Condition]:
        return _CONDITIONS

    @property
    def validation(self) -> str:
        return "ood/single"

    def size(self, condition: str) -> int | None:
        return self.train_size if self.condition(condition).name == "train" else self.evaluation_size

    def generate(self, condition: str, draws: Draws) -> Examples:
        return generate(self.plan, self._single_share(condition), self.block, draws)

    def solve(self, examples: Examples) -> Array:
        return solve_all(self.kind, examples.inputs["sequence"], examples.inputs["query"], self.table)[:, None]

    def describe(self, examples: Examples, index: int) -> str:
        return describe(self.name, self.table, examples, index)

    def picture(self, examples: Examples, index: int) -> str:
        return picture(self.name, self.table, examples, index)

    def judge(self, path: Path, **companions: Path) -> Judgement:
        unknown = sorted(set(companions) - {"mapping"})
        if unknown:
            raise UsageError(f"{self.name}: examples come with a mapping file at most, not with {', '.join(unknown)}")
        if "mapping" in companions:
            return judge_file(
                path, self.kind, load_mapping(companions["mapping"], self.kind, self.features), self.features
            )
        found = judge_file(path, self.kind, self.table, self.features)
        own = f" and its own query table (task seed {self.task_seed}); --mapping FILE compares with another"
        return replace(found, note=own) if self.table and self.mapping is None else found

    def ceilings(self, condition: str) -> Mapping[str, float]:
        ceiling = max(bit_count_ceiling(self.plan, self._single_share(condition)), one_feature_ceiling(self.plan))
        return {"single-feature": ceiling, "bag-of-tokens": ceiling}

    def shortcuts(self, condition: str) -> Sequence[Shortcut]:
        shown = {"clean": 1 / 2, "paper": 1 - (1 - self.density) ** self.length, "released": None}[self.preset]
        single = self._single_share(condition) == 1
        return task_shortcuts(self.kind, self.plan.scenarios, self.length, single, None if self._pairs_share else shown)

    def artefacts(self, condition: str) -> Sequence[Artefact]:
        share = self._single_share(condition)
        # The released data leave the other pair to chance, which has no closed form.
        closed = self.preset != "released" or self.kind not in ("T5", "T7")
        blind = never_ceiling(self.plan, share, only_irrelevant=False) if closed else None
        never = blind, never_ceiling(self.plan, share, only_irrelevant=True)
        return task_artefacts(self.kind, self.preset, self.exclusion_balance, share == 1, self._pairs_share, never)

    @cached_property
    def _pairs_share(self) -> bool:
        return any(shares_feature(pairs) for pairs in self.table)

    def _single_share(self, condition: str) -> float:
        """How many datapoints of a condition show the features of the chosen pair once."""
        return 1.0 if self.condition(condition).name == "ood/single" else PRESETS[self.preset].single_in_train
