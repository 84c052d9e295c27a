"""A look inside trained models: where a variable is (probes) and whether it is used there (interchange), as tables; and
where a model attends.

Positions are named as text: the number of a token, `all` for a whole activation, or the name of a variable whose values
are positions (`second_position[0]`), so that each example has its own. Where a variable's position in the source differs
from that in the base, both positions are exchanged: the feature leaves its position in the base and appears at that in the
source. Exchanging the base's position alone would remove it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from unseen.analysis.accuracy import decide, share_correct
from unseen.analysis.interchange import InterchangeScore, Pairs, make_pairs
from unseen.analysis.probes import FEWEST, probe
from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.spec import Spec
from unseen.stats import mean_interval, wilson
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.variables import Variable, Variables, get_variable
from unseen.training.evaluate import draw_examples, predict
from unseen.training.interventions import (
    ALL,
    Ablation,
    Component,
    Exchange,
    Site,
    ablate,
    cut,
    has_position,
    interchange,
    learn_basis,
    list_sites,
    random_basis,
)
from unseen.training.stack import Stack

ATTENTION = {"decoder.attention": ("example", "token"), "encoder.attention": ("example", "head", "token", "token")}
"""The attention that can be drawn, and its axes: from the query to the tokens, and from token to token."""
WHOLE = "all"
MOST_POSITIONS = 24
"""Activations of more tokens than this are examined as a whole, unless positions are named."""
POOL = 4_000
"""The examples among which pairs are sought."""
_MORE_TOKENS = 2
"""The tokens that a backbone may add behind those of a task."""
FEWEST_TO_LEARN = 2
"""The pairs that learning a subspace takes: one to learn it on, and one to test it on."""


def probe_table(
    stack: Stack,
    task: Task,
    variables: Sequence[str],
    split: str | None = None,
    n: int = 1_000,
    sites: Sequence[str] | str = (),
    positions: Sequence[str] | str = (),
) -> pd.DataFrame:
    """The scores of linear probes for variables, of every member at every site and position, on n test examples.

    Columns: `member`, `variable`, `site`, `position`, `accuracy`, `control`, `selectivity`, `chance`, `n`.
    """
    split = split or task.validation
    examples = draw_examples(task, split, n, "test")
    all_variables = task.variables(examples)
    probed = {name: get_variable(all_variables, name) for name in variables}
    rows = []
    for site in list_sites(stack, task, examples, sites):
        activations = predict(stack, examples, task.spec, [site.name])[site.name]
        for position in _list_positions(site, positions):
            token = _read_position(position, all_variables, site, task.spec, examples)
            for name, variable in probed.items():
                values = variable.values
                if not isinstance(token, int):
                    values = np.where(token >= 0, values, -1)
                if (values >= 0).sum() < FEWEST:
                    continue
                for member, activation in enumerate(activations):
                    # The same split into halves and the same control for all members, sites and positions.
                    draws = stream("probe", task.drawn_by(), split, name).block()
                    vectors = _take_position(activation, token)
                    score = probe(vectors, values, draws, count=variable.count, causes=variable.causes)
                    scores = score.accuracy, score.control, score.selectivity, score.chance, score.n
                    rows.append((member, name, site.name, position, *scores))
    columns = ["member", "variable", "site", "position", "accuracy", "control", "selectivity", "chance", "n"]
    return pd.DataFrame(rows, columns=columns)


def interchange_table(
    stack: Stack,
    task: Task,
    variable: str,
    split: str | None = None,
    n: int = 500,
    sites: Sequence[str] | str = (),
    positions: Sequence[str] | str = (),
    dimension: int | None = None,
) -> pd.DataFrame:
    """The scores of interchange interventions on a variable, of every member at every site and position, on n pairs.

    Columns: `member`, `variable`, `site`, `position`, `accuracy` (the share of answers that a system would give that
    computes the variable there), its interval over pairs `low` and `high` (Wilson, 95 %), `unchanged` (the share that stay
    the base's), `moved` (the share that go from the model's own answer to the base to its own answer to the source, right or
    wrong; NaN for pairs that are not matched), `n` (the pairs that have the position), `matched`. With `dimension`, only a
    subspace of this dimension is exchanged, which is learned on half of the pairs and tested on the others; `control` is a
    random subspace.
    """
    split = split or task.validation
    examples = draw_examples(task, split, POOL, "test")
    draws = stream("interchange", task.drawn_by(), split, variable).block()
    pairs = make_pairs(task, examples, variable, n, draws)
    exchange_sites = _list_exchange_sites(task, pairs, list_sites(stack, task, examples, sites), positions)
    if dimension is None:
        exchanges = [Exchange(exchange_site.site.name, exchange_site.token) for exchange_site in exchange_sites]
        scores = interchange(stack, task, pairs, exchanges)
        return _tabulate_exchanges(variable, exchange_sites, scores).assign(matched=pairs.matched)
    if len(pairs) < FEWEST_TO_LEARN:
        raise UsageError(
            f"a subspace is learned on half of the pairs and tested on the others: n must be at least {FEWEST_TO_LEARN}, "
            f"and there are {len(pairs)} pairs"
        )
    half = len(pairs) // 2
    scores = []
    controls = []
    tested_sites = []
    for exchange_site in exchange_sites:
        # Where few pairs have a position, a half may have none: then there is nothing to learn or to test.
        if not (exchange_site.is_in(pairs, slice(0, half)) and exchange_site.is_in(pairs, slice(half, None))):
            continue
        site = exchange_site.site
        learned_at = exchange_site.choose(slice(0, half))
        tested_at = exchange_site.choose(slice(half, None))
        basis = learn_basis(stack, task, pairs[:half], site, learned_at, dimension, draws)
        random = random_basis(stack, site.shape[-1], dimension, draws)
        exchanges = [Exchange(site.name, tested_at, basis), Exchange(site.name, tested_at, random)]
        learned, control = interchange(stack, task, pairs[half:], exchanges)
        tested_sites.append(exchange_site)
        scores.append(learned)
        controls += [score.accuracy for score in control]
    table = _tabulate_exchanges(variable, tested_sites, scores)
    return table.assign(control=controls, matched=pairs.matched, dimension=dimension)


@dataclass(frozen=True)
class _ExchangeSite:
    """A site and a position there: its name, and the token, or those of each pair."""

    site: Site
    position: str
    token: int | Array

    def choose(self, rows: slice) -> int | Array:
        """The tokens of some of the pairs."""
        return self.token if isinstance(self.token, int) else self.token[rows]

    def is_in(self, pairs: Pairs, rows: slice) -> bool:
        """Whether any of some of the pairs has the position."""
        return bool(has_position(self.choose(rows), len(pairs[rows])).any())


def _list_exchange_sites(
    task: Task, pairs: Pairs, sites: Sequence[Site], positions: Sequence[str] | str
) -> list[_ExchangeSite]:
    """Where pairs are exchanged; without the positions that none of them has."""
    base_variables = task.variables(pairs.bases)
    source_variables = task.variables(pairs.sources)
    exchange_sites = []
    for site in sites:
        for position in _list_positions(site, positions, whole=True):
            token = _read_position(position, base_variables, site, task.spec, pairs.bases)
            if not isinstance(token, int):
                # The feature is removed at its position in the base and appears at its position in the source.
                source_token = _read_position(position, source_variables, site, task.spec, pairs.sources)
                token = np.column_stack([token, source_token])
            if has_position(token, len(pairs)).any():
                exchange_sites.append(_ExchangeSite(site, position, token))
    return exchange_sites


def _tabulate_exchanges(
    variable: str, exchange_sites: Sequence[_ExchangeSite], scores: Sequence[Sequence[InterchangeScore]]
) -> pd.DataFrame:
    """A row per site, position and member."""
    rows = []
    for exchange_site, members in zip(exchange_sites, scores, strict=True):
        for member, score in enumerate(members):
            interval = wilson(round(score.accuracy * score.n), score.n, covers="examples")
            keys = (member, variable, exchange_site.site.name, exchange_site.position)
            rows.append((*keys, score.accuracy, interval.low, interval.high, score.unchanged, score.moved, score.n))
    columns = ["member", "variable", "site", "position", "accuracy", "low", "high", "unchanged", "moved", "n"]
    return pd.DataFrame(rows, columns=columns)


def ablation_table(
    stack: Stack,
    task: Task,
    components: Sequence[Component],
    how: Ablation = "mean",
    split: str | None = None,
    n: int = 1_000,
) -> pd.DataFrame:
    """How much worse every member answers without a component: `accuracy` without it, `intact` with it, and `drop`.

    Real targets have no accuracy: there `loss`, mean absolute error, takes its place, and `drop` is negative.
    """
    split = split or task.validation
    examples = draw_examples(task, split, n, "test")
    metric = "loss" if task.spec.target.kind == "real" else "accuracy"
    intact = _score(predict(stack, examples, task.spec)["prediction"], examples, task)
    draws = stream("ablation", task.drawn_by(), split).block()
    rows = []
    for component, prediction in ablate(stack, task, examples, components, how, draws):
        for member, score in enumerate(_score(prediction, examples, task)):
            drop = intact[member] - score
            keys = (member, component.site, component.position, component.unit, component.head, how)
            rows.append((*keys, score, intact[member], drop, len(examples)))
    columns = ["member", "site", "position", "unit", "head", "how", metric, "intact", "drop", "n"]
    return pd.DataFrame(rows, columns=columns)


def cut_table(
    stack: Stack,
    task: Task,
    site: str,
    query: str = WHOLE,
    key: str = WHOLE,
    split: str | None = None,
    n: int = 1_000,
) -> pd.DataFrame:
    """How much worse every member answers if the tokens at one position do not attend to those at another.

    Columns: `member`, `site`, `query` (who attends), `key` (to whom), `accuracy` (or `loss`), `intact`, `drop`, `changed`
    (the share of examples with another answer; NaN for real targets) and `n`, the examples that have both positions.
    """
    split = split or task.validation
    examples = draw_examples(task, split, n, "test")
    (attention,) = list_sites(stack, task, examples, [site])
    if len(attention.shape) not in (1, 3) or attention.shape[-1] < 2:
        raise UsageError(
            f"'{site}' has no attention weights: its shape for one example is {attention.shape}, expected (heads, tokens, "
            "tokens), or (tokens,) of a single reader"
        )
    if len(attention.shape) == 1 and query != WHOLE:
        raise UsageError(f"'{site}' has a single reader: leave query out")
    variables = task.variables(examples)
    queries = replace(attention, shape=attention.shape[-2:])
    keys = replace(attention, shape=(attention.shape[-1], 1))
    query_token = _read_position(query, variables, queries, task.spec, examples)
    key_token = _read_position(key, variables, keys, task.spec, examples)
    present = has_position(query_token, len(examples)) & has_position(key_token, len(examples))
    if not present.any():
        raise UsageError(f"no example of {split} has both positions, '{query}' and '{key}'; choose others")
    examples = examples[present]
    if not isinstance(query_token, int):
        query_token = query_token[present]
    if not isinstance(key_token, int):
        key_token = key_token[present]
    intact = predict(stack, examples, task.spec)["prediction"]
    without = cut(stack, task, examples, {site: (query_token, key_token)})
    kind = task.spec.target.kind
    metric = "loss" if kind == "real" else "accuracy"
    rows = []
    scores = zip(_score(without, examples, task), _score(intact, examples, task), strict=True)
    for member, (score, whole) in enumerate(scores):
        changed = math.nan
        if kind != "real":
            differ = decide(without[member], kind) != decide(intact[member], kind)
            changed = float(differ.reshape(len(examples), -1).any(1).mean())
        rows.append((member, site, query, key, score, whole, whole - score, changed, len(examples)))
    return pd.DataFrame(rows, columns=["member", "site", "query", "key", metric, "intact", "drop", "changed", "n"])


def average_over_seeds(table: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """The mean of a column of these tables over seeds, with its interval (`low`, `high`: NaN below three seeds)."""
    keys = ["variable", "site", "position"]
    lowest = -1.0 if metric == "selectivity" else 0.0  # a difference of shares; all others are shares
    rows = []
    for key, group in table.groupby(keys, sort=False):
        interval = mean_interval(group[metric], covers="initialisation").within(lowest, 1.0)
        rows.append((*key, group[metric].mean(), interval.low, interval.high, len(group)))
    return pd.DataFrame(rows, columns=[*keys, metric, "low", "high", "seeds"])


@dataclass(frozen=True)
class AttentionMaps:
    """The attention maps a model captured, by name, the examples they are of, and how right its answer to each was."""

    maps: dict[str, Array]
    right: Array
    examples: Examples


def attention_maps(stack: Stack, task: Task, split: str | None, n: int) -> AttentionMaps:
    """The attention of a stack's first member on the first n test examples of a split."""
    examples = draw_examples(task, split or task.validation, n, "test")
    captured = predict(stack, examples, task.spec, tuple(ATTENTION))
    maps = {}
    for name, axes in ATTENTION.items():
        if name in captured and captured[name][0].ndim == len(axes):
            maps[name] = captured[name][0]
    kind = task.spec.target.kind
    correct = np.full(len(examples), np.nan)
    if kind != "real":
        correct = share_correct(captured["prediction"][0], examples.targets, kind)
    return AttentionMaps(maps, correct, examples)


def _score(predictions: Array, examples: Examples, task: Task) -> list[float]:
    kind = task.spec.target.kind
    if kind == "real":
        return [float(np.abs(prediction - examples.targets).mean()) for prediction in predictions]
    return [float(share_correct(prediction, examples.targets, kind).mean()) for prediction in predictions]


def _list_positions(site: Site, positions: Sequence[str] | str, whole: bool = False) -> list[str]:
    """The positions at which a site is examined; with `whole`, also as a whole."""
    if not site.tokens:
        return [WHOLE]
    if positions:
        return [positions] if isinstance(positions, str) else list(positions)
    tokens = [str(token) for token in range(site.tokens)] if site.tokens <= MOST_POSITIONS else []
    return [*tokens, WHOLE] if whole or not tokens else tokens


def _read_position(position: str, variables: Variables, site: Site, spec: Spec, examples: Examples) -> int | Array:
    """`ALL`, one token, or one for each example."""
    if position == WHOLE:
        return ALL
    if position.isdigit():
        if int(position) >= site.tokens:
            raise UsageError(f"'{site.name}' has the positions 0 … {site.tokens - 1}, not {position}")
        return int(position)
    variable = get_variable(variables, position)
    if not variable.positions:
        raise UsageError(f"the values of '{position}' are not positions of tokens")
    before = _count_tokens_before(variable, site, spec, examples)
    values = variable.values + (before or 0)
    present = (variable.values >= 0) & (values >= 0) & (values < site.tokens) & (before is not None)
    return np.where(present, values, -1)


def _count_tokens_before(variable: Variable, site: Site, spec: Spec, examples: Examples) -> int | None:
    """The tokens at a site before those of the variable's stream; None where that is unknown.

    A site has the tokens of this stream, or those of all streams in order and up to two more behind them: one for what is
    given once, and one to read the answer from. It may have others instead (latents, the read-out token alone), or have its
    tokens moved by padding.
    """
    lengths: dict[str, int] = {}
    for stream_of_task in spec.streams:
        field = spec.along(stream_of_task.name)[0]
        lengths[stream_of_task.name] = examples.inputs[field.name].shape[1]
    names = list(lengths)
    stream_name = variable.stream or names[0]
    if site.tokens == lengths[stream_name] + site.token_offset:
        return site.token_offset
    more = site.tokens - site.token_offset - sum(lengths.values())
    if not 0 <= more <= _MORE_TOKENS:
        return None
    before = site.token_offset
    for name in names[: names.index(stream_name)]:
        for field in spec.along(name):
            if field.kind == "mask" and not examples.inputs[field.name].all():
                return None  # the site may have padding of this stream somewhere else
        before += lengths[name]
    return before


def _take_position(activation: Array, token: int | Array) -> Array:
    """(B, T, d) at a token, or (B, …) as a whole: (B, d)."""
    if isinstance(token, int):
        return activation.reshape(len(activation), -1) if token == ALL else activation[:, token]
    vectors: Array = activation[np.arange(len(activation)), token]
    return vectors
