"""The retrieval tasks T1–T7: did certain features occur in a sequence, and in which order?"""

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
from unseen.tasks.base import Array, Artefact, Examples, ForeignFileReport, Shortcut, Split, Task
from unseen.tasks.retrieval.generate import BlockPlan, generate
from unseen.tasks.retrieval.mapping import (
    PAIRS_PER_QUERY,
    Table,
    check_table,
    draw_released_table,
    draw_table,
    has_shared_feature,
    load_mapping,
)
from unseen.tasks.retrieval.scenarios import MAX_EXCLUDED, PRESETS, Balance, PresetName, scenarios

Name = Literal[
    "retrieval/T1", "retrieval/T2", "retrieval/T3", "retrieval/T4", "retrieval/T5", "retrieval/T6", "retrieval/T7"
]
Count = Annotated[int, Option(ge=1)]
Share = Annotated[float, Option(ge=0, le=1)]

_SPLITS = {
    "train": Split("train", "training data: relevant features may occur again and again"),
    "iid": Split("iid", "fresh examples distributed as the training data"),
    "ood/single": Split(
        "ood/single",
        "the papers' validation and test: relevant features occur once. Nothing in it is "
        "unseen; the number of occurrences shifts",
    ),
}
_SLOTS = {"T1": 1, "T2": 2, "T3": 2, "T4": 2, "T5": 4, "T6": 2, "T7": 4}


class Retrieval(Task):
    """A sequence of sets of features, then a query; the answer is yes or no.

    The query of T1 and T2 names its features. The id of T3 … T7 is opaque: the table that says which features it stands
    for is nowhere in the input and has to be learned.

    | task | query | yes if |
    |---|---|---|
    | T1 | feature q | q occurs |
    | T2 | features a, b | a and b occur |
    | T3 | an id that stands for (a, b) | a or b occurs |
    | T4 | an id that stands for (a, b) | a and b occur |
    | T5 | an id that stands for (a, b), (c, d) | a and b occur, or c and d do |
    | T6 | an id that stands for (a, b) | a occurs in a token strictly before one with b |
    | T7 | an id that stands for (a, b), (c, d) | a before b, or c before d |

    T4 and T6, with a query that stands for (22, 7):

        {3, 22} {} {7, 30}    → T4 yes, T6 yes
        {7} {1, 22} {3}       → T4 yes, T6 no: both occur, in the wrong order
        {4} {7, 22} {0}       → T4 yes, T6 no: "before" does not include the same token

    >>> from unseen.tasks.retrieval.solver import solve
    >>> sequences = [{3, 22}, set(), {7, 30}], [{7}, {1, 22}, {3}], [{4}, {7, 22}, {0}]
    >>> [[solve(kind, sequence, [0], [[(22, 7)]]) for kind in ("T4", "T6")] for sequence in sequences]
    [[True, True], [True, False], [True, False]]

    Every task is binary and balanced; half of the datapoints are built to be answered yes, from the scenarios of
    `scenarios`. The table is drawn; preset `released` draws one with the measured quirks of the published table.
    """

    report_by: ClassVar[tuple[str, ...]] = ("scenario",)
    amounts: ClassVar[frozenset[str]] = frozenset({"train_size", "evaluation_size"})

    name: Name
    length: int = Option(10, ge=2, description="tokens of a sequence")
    preset: PresetName = Option(
        "clean", description="sound data, data as released, or data as the paper describes them"
    )
    features: int = Option(36, description="number of features; with a query table, also the number of query ids")
    density: Share = Option(0.2, description="probability of a feature in a token, unless it is relevant or excluded")
    task_seed: int = Option(0, ge=0, description="draws the query table of T3 … T7")
    distinct_pairs: bool = Option(True, description="no pair occurs twice in a drawn table (presets clean and paper)")
    disjoint_within_query: bool = Option(
        True, description="the two pairs behind a query of T5 and T7 share no feature (presets clean and paper)"
    )
    exclusion_balance: Balance = Option(
        "blind",
        description="from which observer it is hidden, as far as possible, that negatives lack relevant features: "
        "one who does not know which are relevant (blind), or one who does (aware; preset clean)",
    )
    none_share: Share | None = Option(
        None,
        description="T6 and T7: of the negatives without wrong order, the share that shows neither feature of "
        "the pair; None: as in the preset",
    )
    mapping: Table | None = Option(None, description="the query table, or the path of a file with one; None: drawn")
    train_size: Count | None = Option(100_000, description="examples of the training set; None: endless")
    evaluation_size: Count | None = Option(10_000, description="examples of every other split; None: endless")

    @field_validator("mapping", mode="before")
    @classmethod
    def _read_mapping(cls, value: object, info: ValidationInfo) -> object:
        """Replace the path of a mapping file by its content: the config holds what the file says, not where it is."""
        if isinstance(value, str | Path) and "features" in info.data and "name" in info.data:
            return load_mapping(value, info.data["name"].partition("/")[2], info.data["features"])
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        has_table = self.kind in PAIRS_PER_QUERY
        least = _SLOTS[self.kind] + MAX_EXCLUDED
        if self.features < least or (has_table and self.features % 2):
            even = "an even number, " if has_table else ""
            raise ValueError(f"features must be {even}at least {least}; got {self.features}")
        if self.exclusion_balance == "aware" and self.preset != "clean":
            raise ValueError(f"exclusion_balance = aware belongs to the preset clean, not to {self.preset}")
        if self.none_share is not None and self.kind not in ("T6", "T7"):
            raise ValueError(f"none_share belongs to T6 and T7, not to {self.kind}")
        draws_table = has_table and self.preset != "released" and self.mapping is None
        if not (self.distinct_pairs and self.disjoint_within_query) and not draws_table:
            raise ValueError(
                "distinct_pairs and disjoint_within_query are about a query table that is drawn: "
                "T3 … T7, preset clean or paper, no mapping"
            )
        if self.mapping is not None:
            if not has_table:
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
        if self.kind not in PAIRS_PER_QUERY:
            return ()
        if self.preset == "released":
            return draw_released_table(self.kind, self.features, self.task_seed)
        options = {"distinct_pairs": self.distinct_pairs, "disjoint_within_query": self.disjoint_within_query}
        return draw_table(self.kind, self.features, self.task_seed, **options)

    @cached_property
    def plan(self) -> BlockPlan:
        """What the generator needs."""
        queries = np.eye(self.features, dtype=np.uint8)
        if self.kind == "T1":
            relevant = np.arange(self.features)[:, None]
        elif self.kind == "T2":
            relevant = np.stack(np.triu_indices(self.features, 1), axis=1)
            queries = queries[relevant[:, 0]] | queries[relevant[:, 1]]
        else:
            relevant = np.array(self.table).reshape(self.features, -1)
        none_share = PRESETS[self.preset].none_share if self.none_share is None else self.none_share
        return BlockPlan(
            task=self.kind,
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
    def splits(self) -> Mapping[str, Split]:
        return _SPLITS

    @property
    def validation(self) -> str:
        return "ood/single"

    def size(self, split: str) -> int | None:
        return self.train_size if self.get_split(split).name == "train" else self.evaluation_size

    def generate(self, split: str, draws: Draws) -> Examples:
        return generate(self.plan, self._single_share(split), self.block, draws)

    # The methods below are no part of a training: what only they need is imported inside.

    def solve(self, examples: Examples) -> Array:
        from unseen.tasks.retrieval.solver import solve_all

        return solve_all(self.kind, examples.inputs["sequence"], examples.inputs["query"], self.table)[:, None]

    def describe(self, examples: Examples, index: int) -> str:
        from unseen.tasks.retrieval.render import describe

        return describe(self.name, self.table, examples, index)

    def picture(self, examples: Examples, index: int) -> str:
        from unseen.tasks.retrieval.render import draw_picture

        return draw_picture(self.name, self.table, examples, index)

    def judge(self, path: Path, **companions: Path) -> ForeignFileReport:
        from unseen.tasks.retrieval.files import judge_file

        unknown = sorted(set(companions) - {"mapping"})
        if unknown:
            raise UsageError(f"{self.name}: examples come with a mapping file at most, not with {', '.join(unknown)}")
        if "mapping" in companions:
            table = load_mapping(companions["mapping"], self.kind, self.features)
            return judge_file(path, self.kind, table, self.features)
        judgement = judge_file(path, self.kind, self.table, self.features)
        if not self.table or self.mapping is not None:
            return judgement
        note = f" and its own query table (task seed {self.task_seed}); --mapping FILE compares with another"
        return replace(judgement, note=note)

    def ceilings(self, split: str) -> Mapping[str, float]:
        from unseen.tasks.retrieval.audit import bit_count_ceiling, one_feature_ceiling

        ceiling = max(bit_count_ceiling(self.plan, self._single_share(split)), one_feature_ceiling(self.plan))
        return {"single-feature": ceiling, "bag-of-tokens": ceiling}

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        from unseen.tasks.retrieval.audit import task_shortcuts

        # How often the other pair of T5 and T7 shows one of its features.
        by_preset = {"clean": 1 / 2, "paper": 1 - (1 - self.density) ** self.length, "released": None}
        other_shown = None if self._pairs_share else by_preset[self.preset]
        return task_shortcuts(self.plan, self._single_share(split) == 1, other_shown)

    def artefacts(self, split: str) -> Sequence[Artefact]:
        from unseen.tasks.retrieval.audit import task_artefacts

        return task_artefacts(self.plan, self._single_share(split), self._pairs_share)

    @cached_property
    def _pairs_share(self) -> bool:
        """Whether the two pairs of some query have a feature in common."""
        return any(has_shared_feature(pairs) for pairs in self.table)

    def _single_share(self, split: str) -> float:
        """The share of a split's datapoints in which the features of the chosen pair occur once."""
        return 1.0 if self.get_split(split).name == "ood/single" else PRESETS[self.preset].single_in_train
