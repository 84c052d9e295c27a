"""The ctl claims: which runs count, and where. (test_claims_verdicts shows that each can reach every verdict.)"""

from __future__ import annotations

from support.claim_ctl_cases import changed, frame, table1
from unseen.claims import CLAIMS
from unseen.claims.judge import judge
from unseen.claims.papers.ctl import NDR


def test_runs_that_did_not_learn_say_nothing_out_of_distribution() -> None:
    records = changed(frame(table1()), "A", NDR, "iid", 0.9)
    found = judge(CLAIMS.load("ctl/K3"), records)
    assert found.verdict != "supported"
    assert {one.verdict for one in found.findings} == {"supported", "not run"}


def test_a_share_of_none_in_five_is_uncertain() -> None:
    """Resampling five runs that all fail gives five that all fail; Wilson's interval reaches 0.43."""
    records = frame(table1())
    for seeds, expected in ((5, "undecided"), (25, "supported")):
        found = judge(CLAIMS.load("ctl/K4"), records[records.seed < seeds])
        shares = [one for one in found.findings if "solved of ctl-ndr on A" in one.criterion.key]
        assert [one.verdict for one in shares] == [expected]


def test_in_another_world_directions_are_judged_and_printed_numbers_are_not() -> None:
    records = frame(table1(functions=24))
    for name in ("ctl/K2", "ctl/K3", "ctl/K4", "ctl/K6"):
        found = judge(CLAIMS.load(name), records)
        assert (found.verdict, found.setting) == ("supported", "functions 24 (paper: 32)")
    assert judge(CLAIMS.load("ctl/table1"), records).verdict == "not run"
