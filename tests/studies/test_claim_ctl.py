"""The ctl claims: which runs count, and where. (That each can come to every word: test_claim_words.)"""

from __future__ import annotations

from claim_ctl_cases import changed, frame, table1

from unseen.studies.claims import CLAIMS
from unseen.studies.claims.claim import judge
from unseen.studies.claims.ctl import NDR
from unseen.studies.claims.ctl_measures import functions_of


def test_runs_that_did_not_learn_say_nothing_out_of_distribution() -> None:
    records = changed(frame(table1()), "A", NDR, "iid", 0.9)
    found = judge(CLAIMS.load("ctl/K3"), records)
    assert found.word != "supported"
    assert {one.word for one in found.findings} == {"supported", "not run"}


def test_none_of_five_is_not_none() -> None:
    """Resampling five runs that all fail gives five that all fail; Wilson's interval reaches 0.43."""
    records = frame(table1())
    for seeds, expected in ((5, "undecided"), (25, "supported")):
        found = judge(CLAIMS.load("ctl/K4"), records[records.seed < seeds])
        shares = [one for one in found.findings if "solved of ctl-ndr on A" in one.part.says]
        assert [one.word for one in shares] == [expected]


def test_in_another_world_directions_are_judged_and_printed_numbers_are_not() -> None:
    records = frame(table1("symbols=4 functions=24"))
    assert functions_of("symbols=4 functions=24") == 24
    for name in ("ctl/K2", "ctl/K3", "ctl/K4", "ctl/K6"):
        found = judge(CLAIMS.load(name), records)
        assert (found.word, found.setting) == ("supported", "functions 24 (paper: 32)")
    assert judge(CLAIMS.load("ctl/table1"), records).word == "not run"
