"""The catalogue: every study counts right, names what exists, and gives the trials it always gave."""

from __future__ import annotations

import json

import pytest

from unseen.analysis.attention import ANALYSES
from unseen.config import digest
from unseen.models import options
from unseen.models.build import build, parameter_count
from unseen.studies.catalog import STUDIES
from unseen.studies.study import SCALES, study
from unseen.studies.trial import Trial
from unseen.tasks import TASKS, task
from unseen.training.recipe import Evaluation, recipe

NAMES = sorted(entry.name for entry in STUDIES)

# Trials by scale: tasks × models (× lengths, or switches) × seeds.
COUNTS = {
    "quickstart": {"smoke": 4 * 2, "mini": 4 * 5},
    "retrieval-table2": {
        "smoke": 2 * 4 * 2,
        "mini": 7 * 4 * 5,
        "small": 7 * 4 * 5,
        "medium": 7 * 4 * 5,
        "full": 7 * 4 * 5,
    },
    "retrieval-lengths": {
        "smoke": 6 * 2,
        "mini": 2 * 6 * 2 * 3,
        "small": 7 * 6 * 3 * 3,
        "medium": 7 * 6 * 4 * 3,
        "full": 7 * 6 * 6 * 5,
    },
    "retrieval-noise": {
        "smoke": 8 * 2,
        "mini": 3 * 8 * 5,
        "small": 3 * 8 * 5,
        "medium": 3 * 8 * 10,
        "full": 3 * 8 * 10,
    },
    # Architectures (MHA: × searches) × settings × gatings × rules (× widths) × tasks × seeds.
    "rules-main": {
        "smoke": 4 * 2 * 4,
        "mini": 2 * 4 * (3 * 3 * 5 + 3 + 3),
        # One seed for each of 20 or 5 tasks.
        "small": 2 * 4 * (5 * 20 + 3 * 2 * 5),
        "medium": 4 * 100,
        "full": 4 * 2 * 4 * 5 * 5 * 5 * 5,
    },
    # Settings × (MHA: four gatings × two encoders, one of them with two gates; RNN: three gatings with two states).
    # Tasks × models × seeds; models × bridges × shared symbols × seeds; models × orders × seeds.
    "ctl-table1": {
        "smoke": 2 * 3 * 2,
        "mini": 2 * 3 * 5,
        "small": 2 * 3 * 25,
        "medium": 2 * 3 * 5,
        "full": 2 * (25 + 50 + 25),
    },
    "ctl-grid": {"smoke": 3 * 2, "mini": 3 * 2 * 2 * 3, "medium": 3 * 2 * 2 * 5, "full": 3 * 20 * 5},
    "ctl-lengths": {"smoke": 3 * 2, "mini": 3 * 3, "full": 3 * 2 * 10},
    # Models × seeds; tasks × (hold-outs, or positions); depths of training; tasks × layers × heads; pools × codings.
    # Where questions are fresh and as released, both.
    "gcog-distractors": {"smoke": 6, "mini": 6 * 5, "small": 6 * 3, "medium": 6 * 3, "full": 2 * 6 * 5},
    "gcog-systematicity": {
        "smoke": 2 * 6,
        "mini": (3 * 6 + 6 + 4) * 5,
        "small": 2 * 6 * 3,
        "medium": 2 * 6 * 3,
        "full": (3 * 6 + 6 + 4 + 2 * 6) * 5,
    },
    "gcog-productivity": {
        "smoke": 2 * 6,
        "mini": (2 * 6 + 4) * 5,
        "small": 2 * 6 * 3,
        "medium": 2 * 6 * 3,
        "full": (2 * 6 + 4 + 2 * 6) * 5,
    },
    "gcog-layers": {"smoke": 4 * 2 * 2, "mini": 4 * 2 * 2 * 3, "medium": 4 * 2 * 2 * 3, "full": 2 * 4 * 4 * 3 * 5},
    "gcog-pool": {"smoke": 2 * 2, "mini": 3 * 5, "medium": 3 * 3, "full": 2 * 2 * 5 * 6 * 3},
    # Settings × gatings × rules × sizes of the training set × tasks.
    # Tasks × (layers, heads or read-outs) × seeds; tasks × positions × seeds; tasks × occurrences × seeds.
    "retrieval-scale": {
        "smoke": 2 + 3 + 2,
        "mini": (2 * (4 + 2 + 2) + 2 * 3 + 2 * 2) * 3,
        "full": (4 * 4 * 3 * 3 + 7 * 3 + 3 * 2) * 5,
    },
    # At scale small × learning rates.
    "rules-data": {"smoke": 2 * 4 * 2, "mini": 2 * 4 * 2 * 5 * 3, "small": 2 * 4 * 12 * 2 * 3},
    # Settings × (two gatings with each router or bias, two without) × learning rates × tasks.
    "rules-routers": {
        "smoke": 2 * (2 * 5 + 2) * 2,
        "mini": 2 * (2 * 15 + 2) * 2 * 6,
        "small": 2 * (2 * (10 + 18) + 2) * 3 * 6,
    },
    # Groups × backbones × seeds; backbones × widths × seeds.
    "state-tracking": {"smoke": 7, "mini": 3 * 7 * 3, "full": 4 * 7 * 5},
    "recall": {"smoke": 6, "mini": 6 * 4 * 3, "full": 6 * 5 * 5},
    # Tests × backbones × seeds.
    "exam-zoo": {"smoke": 7 * 13, "mini": 7 * 13 * 3, "full": 7 * 13 * 5},
    "inside-ctl": {"smoke": 2 * 3 * 2, "mini": 2 * 3 * 5},
    "inside-order": {"smoke": 4 * 2, "mini": 4 * 5},
    # Gatings × rules × tasks × seeds.
    "inside-modules": {"smoke": 3 * 1 * 2 * 2, "mini": 3 * 2 * 5 * 2},
    "rules-confounds": {
        "smoke": 2 * (5 * 2 + 7),
        "mini": 2 * 2 * (5 * 2 + 7) * 3,
        "small": 2 * 2 * (5 * 2 + 7) * 5,
        "full": 2 * (5 * 2 + 7) * 5 * 5 * 5 * 5,
    },
}
# The first trial of every scale. A change here changes what a published table was made from: raise the version of what
# changed and record why.
FIRST = {
    # The trainings of ctl-table1 and of the quickstart, evaluated otherwise.
    "inside-ctl": {"smoke": "42650aaf88b39fa3", "mini": "dec23417e440a229"},
    "inside-order": {"smoke": "b81a08ad27a967a5", "mini": "294d379b66c585f9"},
    "inside-modules": {"smoke": "4c73d7acd5417ef3", "mini": "b7e8ac555ff43f1b"},
    # Version 2: a world of 8 features and a higher learning rate, in which all four ablations learn.
    "quickstart": {"smoke": "b81a08ad27a967a5", "mini": "294d379b66c585f9"},
    "retrieval-table2": {
        "smoke": "02851f97f2a081c0",
        "mini": "fe9ef867e0ef6c12",
        "small": "527e7f70bcceddc5",
        "medium": "2d06f6574cabdee3",
        "full": "1a8f3d92db82c7bc",
    },
    "retrieval-lengths": {
        "smoke": "cffa763dd8271e1e",
        "mini": "1411112fbddfe338",
        "small": "6ba2e7d21f53cdfc",
        "medium": "6ba2e7d21f53cdfc",
        "full": "161493da1f4afd03",
    },
    "retrieval-noise": {
        "smoke": "deff804ebf72be38",
        "mini": "3429c4aca9178f6f",
        "small": "8247a4fe31f051d8",
        "medium": "9576c29c9782f839",
        "full": "8dcbefb83a4ab35c",
    },
    "rules-main": {
        "smoke": "25d682dafe6b7103",
        "mini": "b4c3044475dcfef5",
        "small": "18456cec2a59d4c0",
        "medium": "5e010de26c41d3fa",
        "full": "086b2e61158938ee",
    },
    "ctl-table1": {
        "smoke": "42650aaf88b39fa3",
        "mini": "dec23417e440a229",
        "small": "dec23417e440a229",
        "medium": "74a1f7ebc3282eed",
        "full": "5cec8a81da4624b6",
    },
    "ctl-grid": {
        "smoke": "aa9f7f9728829ec5",
        "mini": "ce89d7f98e6a28ef",
        "medium": "43179d055bb02048",
        "full": "98745e951e18e65c",
    },
    "ctl-lengths": {"smoke": "5d504ec98e327710", "mini": "4593bbac1a6d8618", "full": "da5380f975118443"},
    "gcog-distractors": {
        "smoke": "48c68d2d07e0289d",
        "mini": "fb9d295fc62426f9",
        "small": "daf750432ded8317",
        "medium": "2951a4d9a8679c26",
        "full": "6c5f3268eff5cec9",
    },
    "gcog-systematicity": {
        "smoke": "6d9c231318aa8295",
        "mini": "3bb6a5253966785a",
        "small": "6c541cb4091ebd4b",
        "medium": "2217a15fa794ae7c",
        "full": "83e402792b2e6af6",
    },
    "gcog-productivity": {
        "smoke": "f5331955d5170c5b",
        "mini": "45d6885346e9a8a9",
        "small": "396d07b4737e6e8f",
        "medium": "e992ec0bc5538769",
        "full": "a81f4c0f5b451b99",
    },
    "gcog-layers": {
        "smoke": "136ca5f1feb91c54",
        "mini": "ff70df4022bdca11",
        "medium": "ddf8fb168d9b7bdd",
        "full": "e87c9a5454fec0e4",
    },
    "gcog-pool": {
        "smoke": "7c7f328c2e37e36c",
        "mini": "2e761c94491e5190",
        "medium": "894e9f51a21038a4",
        "full": "31fdd02cac0c53b7",
    },
    "retrieval-scale": {"smoke": "26a115d8396d6856", "mini": "6937d8e9460077c9", "full": "c0b9a28c0bbde467"},
    "rules-data": {"smoke": "d358e9035fe72897", "mini": "9ba96da5d6825164", "small": "0f7ec60c6bb4e3b2"},
    "rules-routers": {"smoke": "25d682dafe6b7103", "mini": "bdcddcb3b630972e", "small": "22e17689918a8a2d"},
    "state-tracking": {"smoke": "a66cca9e0a103610", "mini": "a0703bb56e12f9a2", "full": "da1d15b2158fc2a6"},
    "recall": {"smoke": "e6cd57d008b1abe2", "mini": "c9dc9bae798e3f20", "full": "8659f854e3d8df7f"},
    "exam-zoo": {"smoke": "e0de83ddcc66bd50", "mini": "73a08f231d1fa8ff", "full": "e58be136497e29fc"},
    "rules-confounds": {
        "smoke": "090fb8917dc20d87",
        "mini": "506dd2b74812014b",
        "small": "28c0f672a7456e49",
        "full": "04ebf9366d4d4489",
    },
}


OWN = {
    "specialization": ("rules/mlp", "rules/mha", "rules/rnn"),
    "representation": ("ctl/A", "ctl/R"),
    "similarity": ("gcog/distractor",),
    "probes": ("ctl/A", "ctl/R", "retrieval/T6"),
    "interchange": ("ctl/A", "ctl/R", "retrieval/T6"),
    "ablation": ("rules/mlp",),
}
"""The tasks of the studies on which an analysis draws data of its own."""
# The same trials as they were called before schema 5, when the evaluation was in a trial's identity, where the trials
# are still the same.
FIRST_WITH_EVALUATION = {
    "retrieval-table2": {
        "smoke": "4739581b784ece7d",
        "mini": "9666b8822c7e5810",
        "medium": "1ec52b3ba412475d",
        "full": "2d7467cbbd82ef1f",
    },
    "retrieval-lengths": {
        "smoke": "2acc457089ee6b39",
        "mini": "c77ad7d2cf51c1b9",
        "small": "9440945e45eee6f9",
        "medium": "9440945e45eee6f9",
        "full": "72e6987e701d35ee",
    },
    "retrieval-noise": {
        "smoke": "f2046f4fbde772e1",
        "mini": "f22e3ec8f3969a07",
        "small": "c8303f34b541eb83",
        "medium": "cb31441bb2a1fe9a",
        "full": "f31433473455e7b9",
    },
    "rules-main": {
        "smoke": "74c00ca69c2e71ea",
        "full": "7c1c69ef34488316",
    },
    "ctl-table1": {
        "smoke": "1c4d83d6d215a4dd",
        "medium": "5ab49159fcf5b288",
        "full": "de76d56c0e3d9f6a",
    },
    "ctl-grid": {
        "smoke": "cc9f1d84b0b37b86",
        "medium": "2952d39de9fe331d",
        "full": "e06dbee872c7165d",
    },
    "ctl-lengths": {"smoke": "132733b791d191d5", "mini": "53cd25ca5913db86", "full": "05ccff5af0cc87b1"},
    "gcog-systematicity": {
        "smoke": "e9cb34ae9c683ab3",
        "small": "7bc0150cf54b8abb",
        "medium": "c694508c51c39f0e",
        "full": "2a4b7fabe6462964",
    },
    "gcog-productivity": {
        "smoke": "6a119071c5870769",
        "small": "2f4e6823abc95387",
        "medium": "eff449a31c958302",
        "full": "5791d87cabc4afb9",
    },
    "gcog-layers": {
        "smoke": "c83f09ea9729c189",
        "medium": "c8281136ee050ff7",
        "full": "dc674c01cf17fc47",
    },
    "gcog-pool": {
        "smoke": "90e39267ca83e114",
        "medium": "f0708f75a36fac2c",
        "full": "502ffb1559380282",
    },
    "exam-zoo": {"smoke": "72d3862dc80e8871", "mini": "c9f775da44e04b73", "full": "66e85713344cf1be"},
    "rules-confounds": {"smoke": "bf924f0b42e715f2", "full": "f45f0966e8b77734"},
}


OWN = {
    "specialization": ("rules/mlp", "rules/mha", "rules/rnn"),
    "representation": ("ctl/A", "ctl/R"),
    "similarity": ("gcog/distractor",),
    "probes": ("ctl/A", "ctl/R", "retrieval/T6"),
    "interchange": ("ctl/A", "ctl/R", "retrieval/T6"),
    "ablation": ("rules/mlp",),
}
"""The tasks of the studies on which an analysis draws data of its own."""


def scales(name: str) -> list[tuple[str, str]]:
    return [(name, scale) for scale in study(name).scales]


EVERY = [pair for name in NAMES for pair in scales(name)]


def test_every_study_is_counted_here() -> None:
    assert {name: list(study(name).scales) for name in NAMES} == {n: list(counts) for n, counts in COUNTS.items()}
    assert COUNTS["retrieval-table2"]["full"] == 140
    assert COUNTS["retrieval-lengths"]["full"] == 1_260
    assert COUNTS["rules-main"]["full"] == 20_000


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_every_scale_has_the_trials_it_should(name: str, scale: str) -> None:
    entries = study(name).entries(scale)
    assert len(entries) == COUNTS[name][scale]
    assert len({e.trial.id for e in entries}) == len(entries)
    assert entries[0].trial.id == FIRST[name][scale]


@pytest.mark.parametrize("name", NAMES)
def test_ids_changed_only_by_the_removal_of_the_evaluation(name: str) -> None:
    for scale, old_id in FIRST_WITH_EVALUATION.get(name, {}).items():
        trial = study(name).entries(scale)[0].trial
        identity = json.loads(trial.identity)
        assert trial.id == digest(identity) == FIRST[name][scale]
        # Then the evaluation's option `splits` was called `conditions`.
        evaluation = trial.evaluation.identity()
        old = {"conditions" if option == "splits" else option: value for option, value in evaluation.items()}
        assert digest({**identity, "evaluation": old}) == old_id


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_called_as_it_is_registered_and_its_scales_are_in_order(name: str) -> None:
    found = study(name)
    assert found.name == name
    assert list(found.scales) == [scale for scale in SCALES if scale in found.scales]
    assert {"smoke", "mini"} <= set(found.scales)
    assert (found.scales["smoke"] or 99) <= 1
    assert (found.scales["mini"] or 999) <= 150


@pytest.mark.parametrize("name", NAMES)
def test_tasks_splits_and_analyses_exist_and_fit(name: str) -> None:
    for scale in study(name).scales:
        for entry in study(name).entries(scale, seeds=[0]):
            evaluation = entry.trial.evaluation
            assert entry.trial.task.name in TASKS
            assert set(evaluation.splits) <= set(entry.trial.task.splits)
            for analysis in evaluation.analyses:
                assert entry.trial.task.name in (ANALYSES[analysis].tasks if analysis in ANALYSES else OWN[analysis])


def test_the_full_ctl_studies_are_the_paper_s() -> None:
    table1, grid = study("ctl-table1").entries("full"), study("ctl-grid").entries("full")
    for entry in [*table1, *grid]:
        trial, model = entry.trial, str(entry.levels["model"])
        assert trial.model == options(model)
        assert (trial.task.symbols, trial.task.functions, trial.task.train_size) == (8, 32, 300_000)
        assert trial.recipe.steps == (300_000 if model == "ctl-transformer" else 80_000)
        assert (trial.recipe.warmup, trial.recipe.batches) == (500, "lengths")
        assert trial.recipe.clip == (1 if model == "ctl-ndr" else 5)
    assert {(e.levels["bridge"], e.levels["shared"]) for e in grid} == {
        (o, k) for o in (4, 8, 12, 16) for k in (2, 3, 4, 5, 6)
    }
    assert {e.trial.recipe.batch for e in grid if e.levels["model"] == "ctl-bilstm"} == {128}
    for name in ("ctl-table1", "ctl-grid", "ctl-lengths"):
        assert set(study(name).deviations("full")) == set(study(name).notes)


def test_the_full_rules_study_is_the_paper_s() -> None:
    found = study("rules-main")
    full = found.entries("full")
    assert set(found.deviations("full")) == set(found.notes)
    for entry in full:
        architecture, trial = str(entry.levels["architecture"]), entry.trial
        assert trial.recipe == recipe(f"rules-{architecture}-paper")
        assert (trial.task.preset, trial.data_seed) == ("clean", trial.seed)
        assert (trial.model.gating, trial.model.width) == (entry.levels["gating"], entry.levels["width"])
    at_mini = {(e.levels["task_seed"], e.trial.seed) for e in found.entries("mini")}
    assert at_mini == {(number, number) for number in range(5)}, "every task is learned by one seed of its own"


def test_the_tasks_of_rules_at_small_are_drawn_and_nobody_has_looked_at_them() -> None:
    entries = study("rules-main").entries("small")
    assert all(e.trial.model.width == 32 and e.trial.task.task_seed == e.trial.seed >= 5 for e in entries)
    tasks: dict[object, dict[object, set[object]]] = {}
    for entry in entries:
        levels = entry.levels
        stratum = (levels.get("search"), levels["setting"], levels["rules"])
        tasks.setdefault(levels["architecture"], {}).setdefault(stratum, set()).add(levels["task_seed"])
    sizes = {name: (len(strata), {len(drawn) for drawn in strata.values()}) for name, strata in tasks.items()}
    assert sizes == {"mlp": (2 * 5, {20}), "mha": (2 * 2 * 2, {5}), "rnn": (2 * 2, {5})}


def test_the_random_sample_of_rules_is_declared_complete_in_gatings_and_accepted_by_the_claims() -> None:
    from unseen.claims.papers.rules_measures import columns
    from unseen.claims.planned import catalogued_runs

    entries = study("rules-main").entries("medium")
    experiments: dict[object, set[object]] = {}
    for entry in entries:
        levels = entry.levels
        experiment = tuple(levels.get(axis) for axis in ("architecture", "search", "setting", "rules", "task_seed"))
        experiments.setdefault(experiment, set()).add(levels["gating"])
        assert entry.trial.seed == 5 + entry.trial.task.task_seed, "not a seed whose outcome was seen at mini"
    assert len(experiments) == 100
    assert all(gatings == {"none", "joint", "operation", "truth"} for gatings in experiments.values())
    # A simple random sample of half of the frame has every number of rules about equally often.
    of_rules = [sum(experiment[3] == rules for experiment in experiments) for rules in (2, 4, 8, 16, 32)]
    assert sum(of_rules) == 100 and min(of_rules) > 10
    assert columns(catalogued_runs("rules-main", "medium"))["complete_or_sampled"].all()


def test_claims_and_studies_name_each_other() -> None:
    from unseen.claims import CLAIMS

    tested_by = {entry.name: CLAIMS.load(entry.name).study for entry in CLAIMS}
    named_by = {claim: name for name in NAMES for claim in study(name).claims}
    assert named_by == {claim: name for claim, name in tested_by.items() if name in NAMES}
    assert set(tested_by.values()) <= set(NAMES)


@pytest.mark.parametrize("name", ["retrieval-table2", "retrieval-lengths", "retrieval-noise"])
def test_the_retrieval_studies_follow_the_paper(name: str) -> None:
    found = study(name)
    for scale in found.scales:
        for entry in found.entries(scale):
            assert entry.trial.task.preset == "released"
            assert entry.trial.data_seed == 0  # one data set, as published
            assert set(entry.trial.evaluation.splits) == {"iid", "ood/single"}
    published = recipe("retrieval-paper")
    full = found.entries("full")
    assert all(entry.trial.recipe == published for entry in full)
    assert all(entry.trial.evaluation.examples == 10_000 for entry in full)
    assert set(found.deviations("full")) == set(found.notes)


def test_table2_is_the_ablations_of_the_paper() -> None:
    entries = study("retrieval-table2").entries("full", seeds=[0])
    switches = {e.levels["variant"]: (e.trial.model.positions, e.trial.model.self_attention) for e in entries}
    assert switches == {
        "T−Pos−Att": ("none", False),
        "T+Pos−Att": ("sinusoidal", False),
        "T−Pos+Att": ("none", True),
        "T+Pos+Att": ("sinusoidal", True),
    }
    assert {e.trial.model.embed_dropout for e in entries} == {"with_pos"}
    assert {e.trial.task.length for e in entries} == {10}
    assert {e.trial.task.length for e in study("retrieval-table2").entries("mini")} == {5}


def test_studies_share_the_trials_that_are_the_same() -> None:
    at_ten = {
        e.trial.id
        for e in study("retrieval-lengths").entries("full")
        if e.levels["length"] == 10 and str(e.levels["variant"]).startswith("T")
    }
    assert at_ten == {e.trial.id for e in study("retrieval-table2").entries("full")}


def test_noise_crosses_positions_dropout_and_attention() -> None:
    entries = study("retrieval-noise").entries("mini", seeds=[0])
    t1 = {
        (e.trial.model.positions, e.trial.model.embed_dropout, e.trial.model.self_attention)
        for e in entries
        if e.trial.task.name == "retrieval/T1"
    }
    assert t1 == {(p, d, a) for p in ("none", "sinusoidal") for d in ("never", "always") for a in (True, False)}


def test_the_quickstart_is_what_the_demo_trained_so_far() -> None:
    by_hand = set()
    for positions in ("none", "sinusoidal"):
        for attention in (True, False):
            model = options("retrieval-transformer", positions=positions, self_attention=attention)
            by_hand |= {
                Trial(
                    task("retrieval/T6", length=5, features=8),
                    model,
                    recipe("quick", learning_rate=3e-3, steps=2_500, validate_every=100),
                    Evaluation(),
                    seed,
                    seed,
                ).id
                for seed in range(5)
            }
    assert by_hand == {e.trial.id for e in study("quickstart").entries("mini")}


def test_mini_says_what_it_leaves_out() -> None:
    said = study("retrieval-table2").deviations("mini")
    assert "task length 5 (full: 10)" in said
    assert "batch 100 (paper: 10)" in said


def test_attention_and_recurrent_models_lack_levels_at_mini_and_it_says_so() -> None:
    """Axes used to be pooled over architectures: MLPs have 2, 8 and 32 rules, so 8 and 32 did not seem to be missing."""
    deviations = study("rules-main").deviations("mini")
    assert "rules: 4, 16 left out" in deviations
    assert "rules: 8, 32 left out for architecture mha, rnn" in deviations
    assert "task_seed: 3, 4 left out for architecture mha, rnn" in deviations
    # An independent count of what attention has.
    mha = [e for e in study("rules-main").entries("mini") if e.levels["architecture"] == "mha"]
    assert {e.levels["rules"] for e in mha} == {2} and {e.levels["task_seed"] for e in mha} == {0, 1, 2}


def test_the_grid_of_paths_does_not_borrow_the_notes_of_table_1() -> None:
    notes = " ".join(study("ctl-grid").deviations("full"))
    assert "alone in training" not in notes and "out of 50" not in notes
    assert study("ctl-grid").entries("full")[0].trial.task.actual_include == "none", (
        "no function is always alone in training"
    )


def test_longer_chains_are_trained_as_published() -> None:
    full = study("ctl-lengths").entries("full")
    for entry in full:
        binned = entry.levels["model"] == "ctl-ndr"
        assert entry.trial.recipe.batches == ("lengths" if binned else "shuffled")
    bilstm = next(e.trial for e in full if e.levels["model"] == "ctl-bilstm")
    assert bilstm.model.width == 100
    assert parameter_count(build(bilstm.model, bilstm.task.spec)) == 96_328, "as the paper's code has them"
    lengths = study("ctl-lengths")
    assert lengths.selection == "best", "the claim tests the weights best on validation"
    notes = " ".join(lengths.notes)
    for subject in ("float32", "preset clean", "10 seeds", "training data for each seed", "9 and 10"):
        assert subject in notes
