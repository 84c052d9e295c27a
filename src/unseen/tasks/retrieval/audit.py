"""How far one gets without doing the task: shortcut rules, the artefacts A1–A7, and ceilings of generic baselines.

Accuracies are worked out from the design of the data wherever they have a closed form. Extra occurrences, and the other
pair of the released data, leave none for some rules; their accuracy is then only reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from unseen.randomness import Bools, Floats, Ints
from unseen.tasks.base import Array, Artefact, Examples, Shortcut
from unseen.tasks.retrieval.formulas import FORMULAS, Or, columns_of
from unseen.tasks.retrieval.generate import BlockPlan
from unseen.tasks.retrieval.scenarios import Scenario, exclusion_range

Decide = Callable[[Bools], Bools]
"""An answer, (B,), from which slots' features are present, (B, m)."""


# Shortcuts


@dataclass(frozen=True)
class PresenceLaw:
    """How often each set of present slots occurs with each answer: `present` (K, m), `answer` (K,), `share` (K,)."""

    present: Bools
    answer: Bools
    share: Floats

    def accuracy(self, decide: Decide) -> float:
        """The accuracy of a rule that depends on presence only."""
        return float(self.share[decide(self.present) == self.answer].sum())


def presence_law(scenarios: Sequence[Scenario], two_pairs: bool, other_shown: float) -> PresenceLaw:
    """The law of presence. `other_shown`: how often the other pair of T5 and T7 shows one feature (never two)."""
    present: list[tuple[bool, ...]] = []
    answers: list[bool] = []
    shares: list[float] = []

    def add(slots: tuple[bool, ...], answer: bool, share: float) -> None:
        present.append(slots)
        answers.append(answer)
        shares.append(share)

    other_states = [
        ((True, False), other_shown / 2),
        ((False, True), other_shown / 2),
        ((False, False), 1 - other_shown),
    ]
    for scenario in scenarios:
        share = scenario.weight / 2
        if not two_pairs:
            add(scenario.present, scenario.answer, share)
            continue
        for other, probability in other_states:  # the chosen pair is the first or the second, equally often
            add(scenario.present + other, scenario.answer, share * probability / 2)
            add(other + scenario.present, scenario.answer, share * probability / 2)
    return PresenceLaw(np.array(present), np.array(answers), np.array(shares))


DECISIONS: dict[str, Decide] = {
    "one feature: a present": lambda present: present[:, 0],
    "one feature: b present": lambda present: present[:, 1],
    "any relevant feature present": lambda present: np.any(present, axis=1),
    "a pair complete, order ignored": lambda present: np.any(present[:, 0::2] & present[:, 1::2], axis=1),
    "one feature per pair, either present": lambda present: present[:, 0] | present[:, 2],
    "first pair complete": lambda present: present[:, 0] & present[:, 1],
    "at least 2 of 4 present": lambda present: present.sum(1) >= 2,
    "at least 3 of 4 present": lambda present: present.sum(1) >= 3,
}
_ONE_FEATURE = ("one feature: a present", "one feature: b present")
_ANY = ("any relevant feature present",)
_ORDER_IGNORED = ("a pair complete, order ignored",)
_HALF_OF_THE_QUERY = ("one feature per pair, either present", "first pair complete")

PRESENCE_RULES: dict[str, tuple[str, ...]] = {
    "T1": (),
    "T2": _ONE_FEATURE + _ANY,
    "T3": _ONE_FEATURE,
    "T4": _ONE_FEATURE + _ANY,
    "T5": (*_ANY, *_HALF_OF_THE_QUERY, "at least 2 of 4 present", "at least 3 of 4 present"),
    "T6": _ONE_FEATURE + _ANY + _ORDER_IGNORED,
    "T7": _ANY + _ORDER_IGNORED + _HALF_OF_THE_QUERY,
}
"""The rules that depend on presence only, by task. A rule that is the task itself is not among them."""


def task_shortcuts(plan: BlockPlan, single: bool, other_shown: float | None) -> list[Shortcut]:
    """The shortcut rules of a task with their ceilings. `single`: on data with single occurrences of the chosen pair.

    `other_shown`: how often the other pair of T5 and T7 shows one feature (it never shows two); None: no closed form.
    """
    two_pairs = plan.task in ("T5", "T7")
    # Where the presence of the other pair has no closed form there is no law, and no ceiling is declared.
    law = None
    if not two_pairs or other_shown is not None:
        law = presence_law(plan.scenarios, two_pairs, other_shown or 0.0)
    shortcuts = []
    for name in PRESENCE_RULES[plan.task]:
        decide = DECISIONS[name]
        ceiling = law.accuracy(decide) if law else None
        shortcuts.append(Shortcut(name, partial(answer_by_presence, decide), ceiling))
    if plan.task in ("T2", "T4", "T5"):
        same = sum(scenario.weight for scenario in plan.scenarios if scenario.placement == "same")
        shortcuts.append(Shortcut("a pair in one token", pair_in_one_token, (same + 1) / 2 if single else None))
    if plan.task == "T6":
        yes, accuracy = position_rule(plan.scenarios, plan.length)
        shortcuts.append(Shortcut("position of a", partial(answer_by_position, yes), accuracy if single else None))
    return shortcuts


def answer_by_presence(decide: Decide, examples: Examples) -> Array:
    """The answers, (B, 1), of a rule that depends on presence only."""
    present = np.asarray(columns_of(examples.inputs["sequence"], examples.factors["relevant"]).any(axis=2))
    return _as_targets(decide(present))


def pair_in_one_token(examples: Examples) -> Array:
    """Yes if some token carries both features of a pair."""
    columns = columns_of(examples.inputs["sequence"], examples.factors["relevant"])
    together = columns[:, 0::2] & columns[:, 1::2]
    return _as_targets(np.asarray(together.any(axis=(1, 2))))


def answer_by_position(yes: Bools, examples: Examples) -> Array:
    """The answers, (B, 1), of a rule about the position of the first token with feature a; `yes` (n,): the rule."""
    column = columns_of(examples.inputs["sequence"], examples.factors["relevant"])[:, 0]
    return _as_targets(yes[column.argmax(axis=1)] & column.any(axis=1))


def _as_targets(answer: Bools) -> Array:
    return answer.astype(np.uint8)[:, None]


def position_rule(scenarios: Sequence[Scenario], length: int) -> tuple[Bools, float]:
    """The best answer for each position of a T6 query's first feature, and its accuracy on single occurrences.

    >>> from unseen.tasks.retrieval.scenarios import scenarios
    >>> [round(100 * position_rule(scenarios("T6", 0.0), n)[1], 1) for n in (5, 10, 15, 20, 25, 30)]
    [80.0, 77.5, 76.8, 76.4, 76.2, 76.1]
    """
    token = np.arange(length)
    earlier_of_two = 2 * (length - 1 - token) / (length * (length - 1))  # where the earlier of two random tokens is
    laws = {"in-order": earlier_of_two, "reversed": earlier_of_two[::-1], "first": np.full(length, 1 / length)}
    shares = {True: np.zeros(length), False: np.zeros(length)}
    for scenario in scenarios:
        if scenario.present[0]:
            shares[scenario.answer] += scenario.weight / 2 * laws[scenario.placement]
    absent = sum(scenario.weight / 2 for scenario in scenarios if not scenario.present[0])
    # At each position the likelier answer is given; without the feature the answer is always no, and right.
    yes = shares[True] > shares[False]
    return yes, float(np.maximum(shares[True], shares[False]).sum() + absent)


# Artefacts


def task_artefacts(plan: BlockPlan, single_share: float, pairs_share: bool) -> list[Artefact]:
    """The artefacts to measure on a split of a task, a share of whose datapoints have single occurrences.

    `clean` data lack A1, A2, A3, A4 and A6. A5 cannot vanish for both a query-blind and a query-aware observer, because
    relevant features are absent more often in negatives; A7 follows from the order itself.

    `pairs_share`: the two pairs of some query share a feature, so counting slots sees that feature twice.
    """
    task = plan.task
    clean = plan.preset_name == "clean"
    released = plan.preset_name == "released"
    single = single_share == 1
    # The released data leave the other pair to chance, which has no closed form.
    has_closed_form = not released or task not in ("T5", "T7")
    blind_ceiling = never_ceiling(plan, single_share, only_irrelevant=False) if has_closed_form else None
    aware_ceiling = never_ceiling(plan, single_share, only_irrelevant=True)
    why = " (relevant ones are absent more often in negatives: no balance hides that from everybody)"
    blind = f"best threshold on the number of features that never occur{why}"
    aware = f"best threshold on that number among features that are not relevant{why}"
    is_known = plan.balance != "aware"
    measure_aware = partial(best_threshold, only_irrelevant=True)
    artefacts = [
        Artefact("A5 (query-blind)", blind, best_threshold, 0.5, 0.01, True, blind_ceiling),
        Artefact("A5 (query-aware)", aware, measure_aware, 0.5, 0.01, is_known, aware_ceiling),
    ]

    def add(name: str, summary: str, measure: Callable[[Examples], float], known: bool, absent: float = 0.0) -> None:
        artefacts.append(Artefact(name, summary, measure, absent, 0.002, known))

    if task == "T2":
        summary = "accuracy of 'the first-named feature is present' minus that of the second-named"
        add("A1", summary, first_named_advantage, released)
    if task == "T5":
        summary = "accuracy of 'at least 3 of the 4 slots are present'"
        add("A2", summary, three_of_four, not clean or pairs_share, absent=0.75)
    if task == "T7":
        summary = "share of forced tokens that the other pair enters, positives minus negatives"
        add("A3", summary, avoided_tokens, released)
    if task in ("T5", "T7"):
        summary = "share of positives in which both pairs answer yes"
        add("A4", summary, partial(both_pairs, task), released and not single)
        if single:
            summary = "share of positives in which a feature of the other pair repeats"
            add("A6", summary, other_pair_repeats, not clean)
    if task in ("T6", "T7") and not single:
        summary = (
            "one occurrence of the first feature: wrong-order negatives minus positives "
            "(extra ones that would set the right order are dropped)"
        )
        add("A7", summary, fewer_extras, True)
    return artefacts


def best_threshold(examples: Examples, only_irrelevant: bool = False) -> float:
    """Accuracy of the best rule "at least t (or fewer than t) features never occur"."""
    never = np.logical_not(examples.inputs["sequence"].any(axis=1))
    if only_irrelevant:
        np.put_along_axis(never, examples.factors["relevant"], False, axis=1)
    count = never.sum(axis=1)
    answer = examples.targets[:, 0].astype(np.bool_)
    yes = np.bincount(count[answer], minlength=never.shape[1] + 1)
    no = np.bincount(count[~answer], minlength=never.shape[1] + 1)
    correct = np.concatenate([[0], np.cumsum(no - yes)]) + yes.sum()  # "no" below the threshold, "yes" from it on
    return float(np.maximum(correct, len(answer) - correct).max() / len(answer))


def first_named_advantage(examples: Examples) -> float:
    """How much better the first-named feature of a T2 query predicts the answer than the second-named."""
    present = columns_of(examples.inputs["sequence"], examples.factors["named"]).any(axis=2)
    accuracy = (present == examples.targets.astype(np.bool_)).mean(axis=0)
    return float(accuracy[0] - accuracy[1])


def three_of_four(examples: Examples) -> float:
    """Accuracy of "at least three of the four slots are present"."""
    count = (examples.factors["occurrences"] > 0).sum(axis=1)  # a feature that two pairs share counts twice
    return float(((count >= 3) == examples.targets[:, 0]).mean())


def avoided_tokens(examples: Examples) -> float:
    """How much more often, in positives, the other pair enters a forced token of the chosen one."""
    # A feature that both pairs share is forced itself, so it says nothing.
    examples = examples[_four_distinct(examples)]
    columns = columns_of(examples.inputs["sequence"], _other_pair(examples)).any(axis=1)
    positions = examples.factors["positions"]
    answer = examples.targets.astype(np.bool_)
    forced = positions >= 0
    entered = np.take_along_axis(columns, np.maximum(positions, 0), axis=1)
    return _mean(entered[forced & answer]) - _mean(entered[forced & ~answer])


def both_pairs(task: str, examples: Examples) -> float:
    """Share of positives whose two pairs both satisfy the query (queries with four distinct features)."""
    examples = examples[_four_distinct(examples) & (examples.targets[:, 0] == 1)]
    formula = FORMULAS[task]
    assert isinstance(formula, Or)
    columns = columns_of(examples.inputs["sequence"], examples.factors["relevant"])
    return _mean(np.logical_and.reduce([term.holds(columns) for term in formula.terms]))


def other_pair_repeats(examples: Examples) -> float:
    """Share of positives in which a feature of the other pair occurs more than once."""
    examples = examples[examples.targets[:, 0] == 1]
    columns = columns_of(examples.inputs["sequence"], _other_pair(examples))
    return _mean((columns.sum(axis=2) > 1).any(axis=1))


def fewer_extras(examples: Examples) -> float:
    """How much more often the first feature occurs once in wrong-order negatives than in positives."""
    first_slot = 2 * examples.factors["chosen"]
    once = examples.factors["occurrences"][np.arange(len(examples)), first_slot] == 1
    scenario = examples.factors["scenario"]
    return _mean(once[scenario == "no/wrong-order"]) - _mean(once[scenario == "yes"])


def _four_distinct(examples: Examples) -> Bools:
    ordered = np.sort(examples.factors["relevant"], axis=1)
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).all(axis=1))


def _other_pair(examples: Examples) -> Ints:
    relevant = examples.factors["relevant"]
    return np.where(examples.factors["chosen"][:, None] == 0, relevant[:, 2:], relevant[:, :2])


def _mean(values: Bools) -> float:
    """The share of true values; 0 if there are none."""
    return float(values.mean()) if values.size else 0.0


# Ceilings: what counting alone reaches, by the design


@dataclass(frozen=True)
class Build:
    """One way to build a datapoint of a scenario, and its probability given the scenario.

    - `forced`: the number of bits that are set; `free`: the (mean) number of bits that are background;
    - `excluded`: the number of randomly excluded features; `absent`: relevant features that are missing or blocked.
    """

    probability: float
    forced: float
    free: float
    excluded: int
    absent: int


def bit_count_ceiling(plan: BlockPlan, single_share: float) -> float:
    """Accuracy of the best threshold on the number of active bits: forced ones, plus a binomial number of free ones.

    Where the released data exclude relevant features, or scan, the mean number of free bits replaces its distribution.
    """
    from scipy.special import bdtr  # imported late, because that takes longer than making a task

    bits = np.arange(plan.length * plan.features + 1)
    gap = np.zeros(len(bits))  # the cumulative distribution of positives minus that of negatives
    for weight, build in _signed_builds(plan, single_share):
        free = round(build.free)
        # `bdtr` is not defined below 0 and from the number of trials on.
        law = bdtr(bits - build.forced, np.full(len(bits), free), plan.density)
        gap += weight * np.where(bits < build.forced, 0.0, np.where(bits - build.forced >= free, 1.0, law))
    return float(1 + np.abs(gap).max()) / 2


def never_ceiling(plan: BlockPlan, single_share: float, only_irrelevant: bool) -> float:
    """Accuracy of the best threshold on the number of features that never occur: of all, or of the irrelevant ones.

    Excluded features never occur, others by chance; of the relevant ones, those that are missing or blocked.
    """
    from scipy.stats import binom, hypergeom  # imported late, as above

    irrelevant = plan.features - plan.relevant.shape[1]
    by_chance = (1 - plan.density) ** plan.length
    counts = np.arange(plan.features + 1)
    gap = np.zeros(len(counts))
    for weight, build in _signed_builds(plan, single_share):
        excluded = np.arange(build.excluded + 1)  # how many irrelevant features are excluded
        if plan.task in plan.preset.exclusion_hits_relevant:
            law = hypergeom.pmf(excluded, plan.features, irrelevant, build.excluded)
        else:
            law = (excluded == build.excluded).astype(float)
        offset = excluded + (0 if only_irrelevant else build.absent)
        gap += weight * (binom.cdf(counts[:, None] - offset, irrelevant - excluded, by_chance) @ law)
    return float(1 + np.abs(gap).max()) / 2


def one_feature_ceiling(plan: BlockPlan) -> float:
    """Accuracy of "a certain feature occurs" for any query: the feature is relevant to few queries only."""
    slots = plan.relevant.shape[1]
    # Of all queries, slots / features have the feature in one of their slots; for the others it is a coin toss.
    law = presence_law(plan.scenarios, slots == 4, 1 / 2)
    best = max(float(law.share[law.present[:, slot] == law.answer].sum()) for slot in range(slots))
    return float(1 / 2 + (best - 1 / 2) * slots / plan.features)


def _signed_builds(plan: BlockPlan, single_share: float) -> Iterator[tuple[float, Build]]:
    """All ways to build a datapoint, with their shares: positive for the answer yes, negative for no."""
    for single, share in ((True, single_share), (False, 1 - single_share)):
        for scenario in plan.scenarios if share else ():
            sign = 1 if scenario.answer else -1
            for build in _builds(plan, scenario, single):
                yield sign * share * scenario.weight * build.probability, build


def _builds(plan: BlockPlan, scenario: Scenario, single: bool) -> Iterator[Build]:
    """The ways to build a datapoint of a scenario: states of the other pair, and numbers of excluded features."""
    irrelevant = plan.features - plan.relevant.shape[1]
    present = sum(scenario.present)
    missing = min(2, plan.relevant.shape[1]) - present
    # Free bits of the chosen pair: none if single, else all but the forced tokens; wrong orders leave half of them.
    apart = scenario.placement in ("different", "in-order", "reversed")
    chosen_free = 0 if single else present * (plan.length - (2 if apart else 1))
    if scenario.placement == "reversed":
        chosen_free //= 2
    for probability, blocked, other_forced, other_free in _other_pair_states(plan, scenario, single):
        low, high = exclusion_range(
            plan.preset_name,
            plan.balance,
            plan.task,
            np.array([missing]),
            np.array([blocked]),
            np.array([scenario.answer and not single]),
        )
        sizes = np.maximum(np.arange(low[0], high[0] + 1), 0).tolist()  # equally likely
        for size in sizes:
            if plan.task in plan.preset.exclusion_hits_relevant:
                relevant_share = 1 - size / plan.features
                irrelevant_left = irrelevant * relevant_share
            else:
                relevant_share = 1.0
                irrelevant_left = float(irrelevant - size)
            free = plan.length * irrelevant_left + relevant_share * (chosen_free + other_free)
            yield Build(probability / len(sizes), present + other_forced, free, size, missing + blocked)


def _other_pair_states(plan: BlockPlan, scenario: Scenario, single: bool) -> list[tuple[float, int, float, float]]:
    """Probability, blocked features, forced bits and free bits of each state of the other pair, if there is one."""
    length = plan.length
    present = sum(scenario.present)
    if plan.relevant.shape[1] < 4:
        return [(1.0, 0, 0.0, 0.0)]
    if plan.preset.other_pair == "balanced":
        return [(0.5, 2, 0.0, 0.0), (0.5, 1, 1.0, 0.0 if single else length - 1.0)]
    if plan.preset.other_pair == "background" or single or (plan.task == "T5" and not scenario.answer):
        # Artefact A3: in released T7 negatives the other pair avoids the forced tokens.
        avoids = plan.preset.other_pair == "released" and plan.task == "T7" and not scenario.answer
        return [(1.0, 1, 0.0, float(length - present) if avoids else float(length))]
    if scenario.answer:
        return [(1.0, 0, 0.0, 2.0 * length)]
    # The scan: the first feature is free, the second until the first has come.
    tokens = length - present
    until_first = sum((1 - plan.density) ** token for token in range(tokens))
    return [(1.0, 0, 0.0, tokens + until_first)]
