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
from unseen.names import name_in_family, parse_split
from unseen.randomness import Draws
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Artefact, Examples, Expressions, ForeignFileReport, Shortcut, Split, Task
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
from unseen.tasks.variables import Variables

Name = Literal[
    "retrieval/T1", "retrieval/T2", "retrieval/T3", "retrieval/T4", "retrieval/T5", "retrieval/T6", "retrieval/T7"
]
Count = Annotated[int, Option(ge=1)]
Share = Annotated[float, Option(ge=0, le=1)]

_IID = Split("iid", "fresh examples distributed as the training data")
_SPLITS = {
    "train": Split("train", "training data: relevant features may occur again and again"),
    "iid": _IID,
    "ood/single": Split(
        "ood/single",
        "relevant features occur once, as in the papers' validation and test sets; only the number of occurrences shifts",
    ),
}
_SPLITS_OF_SINGLE = {
    "train": Split("train", "training data: relevant features occur once"),
    "iid": _IID,
    "ood/free": Split("ood/free", "relevant features may occur again and again; only the number of occurrences shifts"),
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
    | T3 | an id that means (a, b) | a or b occurs |
    | T4 | an id that means (a, b) | a and b occur |
    | T5 | an id that means (a, b), (c, d) | a and b occur, or c and d do |
    | T6 | an id that means (a, b) | a occurs in a token strictly before one with b |
    | T7 | an id that means (a, b), (c, d) | a before b, or c before d |

    T4 and T6, with a query that means (22, 7):

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
    # Further tests add splits and change none of the others.
    size_options: ClassVar[frozenset[str]] = frozenset({"train_size", "evaluation_size", "test_lengths"})

    name: Name
    length: int = Option(10, ge=2, description="tokens of a sequence")
    preset: PresetName = Option(
        "clean", description="sound data, data as released, or data as the paper describes them"
    )
    features: int = Option(
        36, le=10_000, description="number of features; with a query table, also the number of query ids"
    )
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
    occurrences: Literal["free", "single"] = Option(
        "free",
        description="how often relevant features occur in training: again and again, as in the preset, or once; the split "
        "ood/single or ood/free has the other",
    )
    test_lengths: tuple[Annotated[int, Option(ge=2, le=10_000)], ...] = Option(
        (),
        description="tokens of the sequences of further tests, a split ood/length=N for each, in which relevant features "
        "occur once",
    )
    train_size: Count | None = Option(100_000, description="examples of the training set; None: endless")
    evaluation_size: Count | None = Option(10_000, description="examples of every other split; None: endless")

    @field_validator("mapping", mode="before")
    @classmethod
    def _read_mapping(cls, value: object, info: ValidationInfo) -> object:
        """Replace the path of a mapping file by its content: the config holds what the file says, not where it is."""
        if isinstance(value, str | Path) and "features" in info.data and "name" in info.data:
            return load_mapping(value, name_in_family(info.data["name"]), info.data["features"])
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
        if self.length in self.test_lengths or len(set(self.test_lengths)) != len(self.test_lengths):
            raise ValueError(
                f"test_lengths = {list(self.test_lengths)} must be different lengths other than length = {self.length}"
            )
        if self.mapping is not None:
            if not has_table:
                raise ValueError(f"{self.kind} has no query table; leave the mapping away")
            check_table(self.kind, self.mapping, self.features)
        return self

    @property
    def kind(self) -> str:
        """T1 … T7."""
        return name_in_family(self.name)

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
        """The facts that the generator needs."""
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
        splits = _SPLITS if self.occurrences == "free" else _SPLITS_OF_SINGLE
        if not self.test_lengths:
            return splits
        by_length = {}
        for length in self.test_lengths:
            name = f"ood/length={length}"
            text = f"sequences of {length} tokens instead of {self.length}; relevant features occur once"
            by_length[name] = Split(name, text, ("length",))
        return {**splits, **by_length}

    @property
    def validation(self) -> str:
        return "ood/single" if self.occurrences == "free" else "iid"

    def generate(self, split: str, draws: Draws) -> Examples:
        examples = generate(self._plan_of(split), self._single_share(split), self.block, draws)
        if self.test_lengths:
            length = self._plan_of(split).length
            examples = replace(examples, factors={**examples.factors, "length": np.full(self.block, length)})
        return examples

    def _plan_of(self, split: str) -> BlockPlan:
        """The plan of a split: that of training, with the split's own length."""
        length = parse_split(self.get_split(split).name).number("length")
        return self.plan if length is None else replace(self.plan, length=length)

    # The methods below are not called in training, so their imports are inside.

    def solve(self, examples: Examples) -> Array:
        from unseen.tasks.retrieval.solver import solve_all

        return solve_all(self.kind, examples.inputs["sequence"], examples.inputs["query"], self.table)[:, None]

    def variables(self, examples: Examples) -> Variables:
        from unseen.tasks.retrieval.variables import list_variables

        return list_variables(self.kind, examples.inputs["sequence"], examples.inputs["query"], self.table)

    def expressions(self, examples: Examples) -> Expressions | None:
        # The query decides what is computed, and no two forms of a query mean the same (a table may name a pair twice).
        queries = [tuple(np.flatnonzero(query).tolist()) for query in examples.inputs["query"]]
        pairs = [tuple(sorted(self.table[query[0]])) if self.table else query for query in queries]
        return Expressions(queries, pairs)

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        from unseen.tasks.retrieval.variables import answer_with

        sequences, queries = examples.inputs["sequence"], examples.inputs["query"]
        return answer_with(self.kind, sequences, queries, self.table, name, values, self.solve(examples))

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

        plan = self._plan_of(split)
        ceiling = max(bit_count_ceiling(plan, self._single_share(split)), one_feature_ceiling(plan))
        return {"single-feature": ceiling, "bag-of-tokens": ceiling}

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        from unseen.tasks.retrieval.audit import task_shortcuts

        plan = self._plan_of(split)
        # How often the other pair of T5 and T7 shows one of its features.
        by_preset = {"clean": 1 / 2, "paper": 1 - (1 - self.density) ** plan.length, "released": None}
        other_shown = None if self._pairs_share else by_preset[self.preset]
        return task_shortcuts(plan, self._single_share(split) == 1, other_shown)

    def artefacts(self, split: str) -> Sequence[Artefact]:
        from unseen.tasks.retrieval.audit import task_artefacts

        return task_artefacts(self._plan_of(split), self._single_share(split), self._pairs_share)

    @cached_property
    def _pairs_share(self) -> bool:
        """Whether the two pairs of some query have a feature in common."""
        return any(map(has_shared_feature, self.table))

    def _single_share(self, split: str) -> float:
        """The share of a split's datapoints in which the features of the chosen pair occur once."""
        name = self.get_split(split).name
        trained_once = self.occurrences == "single" and name in ("train", "iid")
        tests_length = parse_split(name).number("length") is not None
        if trained_once or name == "ood/single" or tests_length:
            return 1.0
        return PRESETS[self.preset].single_in_train
