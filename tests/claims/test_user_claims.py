"""Claims of users: what a file may say, how it is refused, and that the verdict follows from the runs."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from unseen.claims.judge import judge
from unseen.claims.registration import fingerprint
from unseen.claims.user_claims import read_claims, recall_claims
from unseen.errors import CheckFailed, UsageError

CLAIMS = """\
study: order
claims:
  - claim: attention-helps
    statement: Self-attention helps where order matters.
    split: ood/single
    headline:
      - better: {variant: attention}
        than: {variant: plain}
        by: 0.02
    details:
      - between: [0.4, 0.6]
        runs: {variant: plain}
"""


def write(path: Path, text: str = CLAIMS) -> Path:
    file = path / "claims.yaml"
    file.write_text(text)
    return file


def table(attention: list[float], plain: list[float]) -> pd.DataFrame:
    rows = []
    for variant, values in (("attention", attention), ("plain", plain)):
        for seed, value in enumerate(values):
            for split, weights, shift in (
                ("ood/single", "best", 0.0),
                ("ood/single", "last", 0.4),
                ("iid", "best", 0.4),
            ):
                rows.append(
                    {
                        "task": "retrieval/T6", "variant": variant, "seed": seed, "data_seed": seed, "split": split,
                        "selection": weights, "factor": "", "level": "", "metric": "accuracy", "value": value + shift,
                        "n": 10_000, "status": "finished", "not_converged": False, "trial": f"{variant}{seed}",
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def test_a_claim_is_read_and_judged_by_the_named_weights_and_split(tmp_path: Path) -> None:
    (claim,) = read_claims(write(tmp_path))
    assert claim.name == "order/attention-helps" and claim.study == "order"
    assert [(c.role, c.low, c.high) for c in claim.criteria] == [("headline", 0.02, math.inf), ("detail", 0.4, 0.6)]
    plain = [0.50, 0.51, 0.49, 0.50, 0.52]
    assert judge(claim, table([0.80, 0.82, 0.79, 0.81, 0.80], plain)).verdict == "supported"
    assert judge(claim, table([0.30, 0.31, 0.30, 0.32, 0.31], plain)).verdict == "contradicted"
    assert judge(claim, table([0.80, 0.82, 0.79, 0.81, 0.80], [])).verdict in ("undecided", "not run")


def test_a_claim_may_be_about_an_exchange_at_one_site(tmp_path: Path) -> None:
    levels = {"symbol[1],encoder.state,token[1]": 0.0, "symbol[1],embed,all": 0.6}
    exchanges = []
    for level, shift in levels.items():
        rows = table([0.30, 0.32, 0.29, 0.31, 0.30], [0.10, 0.11, 0.09, 0.10, 0.12]).assign(level=level)
        exchanges.append(
            rows.assign(metric="interchange/accuracy", factor="variable,site,position", value=rows["value"] + shift)
        )
    records = pd.concat([table([0.9] * 5, [0.9] * 5), *exchanges], ignore_index=True)
    for level, verdict in (("symbol[1],encoder.state,token[1]", "contradicted"), ("symbol[1],embed,all", "supported")):
        text = f"""\
study: order
claims:
  - claim: used
    statement: The symbol is used there.
    split: ood/single
    metric: interchange/accuracy at {level}
    headline:
      - above: 0.5
        runs: {{variant: attention}}
"""
        (claim,) = read_claims(write(tmp_path, text))
        assert judge(claim, records).verdict == verdict


def test_a_claim_may_say_itself_that_a_model_fails(tmp_path: Path) -> None:
    records = table([0.80, 0.82, 0.79, 0.81, 0.80], [0.50, 0.51, 0.49, 0.50, 0.52])
    points = []
    for trial in records["trial"].unique():
        for step in range(9):
            value = 0.5 if trial.startswith("plain") else min(0.5 + 0.1 * step, 0.8)
            points.append({"trial": trial, "step": step, "split": "iid", "metric": "accuracy", "value": value})
    for text, verdict in ((CLAIMS, "undecided"), (CLAIMS.replace("by: 0.02", "may_fail: true"), "supported")):
        (claim,) = read_claims(write(tmp_path, text))
        assert judge(claim, records, curves=lambda: pd.DataFrame(points)).verdict == verdict


def test_every_byte_of_a_criterion_counts(tmp_path: Path) -> None:
    (claim,) = read_claims(write(tmp_path))
    assert fingerprint(claim) == fingerprint(read_claims(write(tmp_path))[0])
    for old, new in (
        ("by: 0.02", "by: 0.03"),
        ("by: 0.02", "by: 0.02\n        may_fail: true"),
        ("plain}\n        by", "basic}\n        by"),
        ("ood/single", "iid"),
        ("0.6]", "0.7]"),
    ):
        (changed,) = read_claims(write(tmp_path, CLAIMS.replace(old, new)))
        assert fingerprint(changed) != fingerprint(claim), old


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("study: order\n", "", "names the study that tests them"),
        ("statement: Self-attention helps where order matters.", "sentence: x", "unknown key 'sentence'"),
        ("claim: attention-helps", "claim: 7", "line 3: claim = 7: expected text"),
        ("split: ood/single", "split:", "needs split: …"),
        ("better: {variant: attention}", "bettre: {variant: attention}", "Did you mean 'better'"),
        ("better: {variant: attention}", "above: 0.5", "'than' belongs to better"),
        ("by: 0.02", "by: much", "line 9: by = 'much': expected a number"),
        ("by: 0.02", "may_fail: often", "line 9: may_fail = 'often': expected true or false"),
        ("than: {variant: plain}", "than: {}", "which runs? Name an axis"),
        ("than: {variant: plain}", "than: {variant: {a: 1}}", "expected a level or a list of levels"),
        ("between: [0.4, 0.6]", "between: [0.6, 0.4]", "the smaller first"),
        ("between: [0.4, 0.6]", "between: [0.4, true]", "expected two numbers"),
        ("runs: {variant: plain}", "better: {variant: plain}", "a criterion has one of above, below"),
        ("    headline:", "    unit: week\n    headline:", "unit = 'week': expected seed or task"),
        ("    headline:", "    weights: middle\n    headline:", "weights = 'middle': expected best or last"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CLAIMS
    with pytest.raises(UsageError) as refusal:
        read_claims(write(tmp_path, CLAIMS.replace(old, new)))
    assert message in str(refusal.value) and "claims.yaml, line" in str(refusal.value)


def test_claims_without_a_headline_or_given_twice_are_refused(tmp_path: Path) -> None:
    without = CLAIMS[: CLAIMS.index("    headline:")]
    with pytest.raises(UsageError, match="at least one headline criterion"):
        read_claims(write(tmp_path, without))
    twice = CLAIMS + CLAIMS[CLAIMS.index("  - claim") :]
    with pytest.raises(UsageError, match="given twice"):
        read_claims(write(tmp_path, twice))


@pytest.mark.parametrize("registration", [{}, [], {"claims": [], "study": "mine"}, {"claims": 3}])
def test_a_damaged_registration_is_named(registration: object) -> None:
    with pytest.raises((CheckFailed, UsageError), match="somewhere"):
        recall_claims({"claims": registration}, "somewhere")
