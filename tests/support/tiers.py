"""The tiers of the tests: what `make test-fast` leaves out, and of tests with many cases how many it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1]
# `make test-fast` leaves these tiers out; a folder or a file stands for all tests in it, `FILE::NAME` for one function
# with all its cases. `make test` runs everything.
TIERS = {
    "docs": ("docs", "test_readme.py"),
    "ray": (
        "running/test_executor_ray.py",
        "running/test_ray_autoscaler.py",
        "running/test_runner_evaluations.py::test_ray_evaluates_to_the_same_bits",
        "studies/test_foreign_studies.py::test_ray_workers_import_a_class_by_its_name",
    ),
    "browser": ("report/test_page_browser.py",),
    "slow": (
        "analysis/test_router_health.py::test_the_experts_of_a_trained_model_layer_by_layer",
        "benchmarks",
        "claims/test_claims_retrieval.py::test_a_shuffled_table_contradicts_most_of_it",
        "claims/test_claims_retrieval.py::test_records_of_other_studies_are_no_evidence",
        "claims/test_claims_retrieval.py::test_too_few_seeds_settle_nothing",
        "claims/test_claims_rules.py",
        "claims/test_claims_stores.py::test_the_page_has_every_claim_its_verdict_and_what_would_run_the_rest",
        "claims/test_claims_verdicts.py",
        "claims/test_registration.py::test_a_claim_that_was_written_after_the_outcome_is_exploratory",
        "claims/test_registration.py::test_a_store_says_when_its_runs_began_and_so_do_its_records",
        "claims/test_shipped_records.py",
        "claims/test_until_decided.py",
        "cli/test_cli.py",
        "cli/test_cli_bench.py::test_the_real_command",
        "cli/test_cli_claims.py",
        "cli/test_cli_compare.py::test_the_table_fits_a_terminal_and_says_what_it_shows",
        "cli/test_cli_describe.py::test_verify_says_its_verdict_first_and_its_rows_on_request",
        "cli/test_cli_exam.py",
        "cli/test_cli_plan.py::test_the_command_imports_nothing_heavy_before_it_runs",
        "cli/test_cli_report.py::test_several_figures_go_to_a_folder",
        "cli/test_cli_report.py::test_the_page_and_where_it_is",
        "cli/test_cli_run.py",
        "cli/test_cli_votes.py",
        "compare/test_identical.py",
        "exam",
        "export/test_export_folder.py::test_a_killed_export_does_not_look_complete",
        "kit",
        "models/backbones/test_backbone_stack.py",
        "models/ctl/test_ctl_learning.py",
        "models/ctl/test_ctl_stack.py",
        "models/gcog/test_gcog_learning.py",
        "models/gcog/test_gcog_stack.py",
        "models/rules/test_rules_learning.py",
        "models/rules/test_rules_stacks.py",
        "models/test_compile.py",
        "models/test_foreign_config.py::test_the_source_is_the_same_in_every_process",
        "models/test_foreign_config.py::test_what_other_processes_can_import",
        "models/test_foreign_examples.py",
        "models/test_stack_contract.py",
        "report/figures/test_exam_figures.py",
        "report/figures/test_gcog_figures.py",
        "report/figures/test_retrieval_figures.py::test_each_study_has_its_figures",
        "report/figures/test_rules_figures.py",
        "report/sections/test_specialization_section.py::test_the_page_of_a_users_experts_has_their_collapse_and_alignment",
        "report/test_page.py",
        "running/test_executor_local.py",
        "running/test_executor_slurm.py",
        "running/test_faults.py",
        "running/test_kill.py",
        "running/test_quiet_ends.py::test_a_full_standard_output_is_one_line",
        "running/test_quiet_ends.py::test_a_starting_worker_whose_runner_dies_ends_in_silence",
        "running/test_quiet_ends.py::test_ctrl_c_while_modules_are_imported",
        "running/test_runner_evaluations.py",
        "running/test_runs.py",
        "stats/test_coverage.py",
        "store/test_directory.py::test_a_kill_before_there_was_a_database_is_gone_on_from",
        "store/test_directory.py::test_a_kill_while_the_database_was_made_is_gone_on_from",
        "store/test_directory.py::test_the_commands_end_with_2_and_one_line",
        "store/test_looking_runs_nothing.py",
        "store/test_records.py::test_another_study_evaluates_the_weights_of_the_same_trainings",
        "store/test_records.py::test_bad_sources_are_refused_before_anything_is_written",
        "store/test_records.py::test_extending_begins_from_the_shipped_records",
        "store/test_records.py::test_finished_trials_are_taken_over",
        "store/test_records.py::test_only_what_is_missing_is_trained",
        "store/test_records.py::test_opening_one_imports_nothing_that_it_names",
        "store/test_records.py::test_pandas_alone_opens_it",
        "store/test_records.py::test_verdicts_are_those_of_the_store",
        "store/test_store.py::test_a_full_disk_is_one_line_and_loses_nothing",
        "store/test_store.py::test_a_killed_store_lives_in_its_main_file",
        "store/test_store_faults.py",
        "store/test_store_growth.py",
        "studies/test_description.py::test_a_store_without_a_description_is_still_read",
        "studies/test_description.py::test_the_page_asks_the_question_and_shows_the_right_weights",
        "studies/test_foreign_studies.py",
        "studies/test_smoke_studies.py",
        "tasks/retrieval/test_retrieval_audit.py",
        "tasks/rules/test_rules_verify.py",
        "tasks/test_contract.py",
        "tasks/test_equivalence.py::test_gcog_forms_agree_on_sampled_scenes",
        "tasks/test_verify.py",
        "test_exam_in_python.py",
        "test_fuzz.py",
        "test_inside.py",
        "test_package.py",
        "test_your_model.py",
        "tracking",
        "training/test_device_steps.py::test_reading_seldom_changes_nothing",
        "training/test_inside_analyses.py::test_records_of_probes_and_interchange",
        "training/test_memory.py",
        "training/test_plateau.py::test_a_resumed_run_ends_at_the_same_plateau",
        "training/test_plateau.py::test_members_end_one_by_one_and_each_as_it_would_alone",
        "training/test_similarity.py::test_a_stored_run_leaves_the_rows",
        "training/test_similarity.py::test_every_measure_against_a_plain_way",
        "training/test_specialize.py::test_a_router_has_the_metrics_of_weights_and_of_p",
        "training/test_specialize.py::test_adaptation_is_sampled_where_weights_depend_on_other_tokens",
        "training/test_stack_equals_solo.py",
        "training/test_training.py::test_a_resumed_run_equals_the_uninterrupted_one",
        "tuning",
    ),
}


def tiers_of(path: Path, function: str) -> list[str]:
    """The tiers of a test function in a file, whose path is relative to the folder of the tests."""
    test = Path(f"{path.as_posix()}::{function}")
    return [
        tier
        for tier, places in TIERS.items()
        if any(path.is_relative_to(place) or test.as_posix() == place for place in places)
    ]


def choose_cases(names: Sequence[str], count: int) -> set[str]:
    """At most so many cases of every test function: the first, the last, and others evenly between them."""
    cases: dict[str, list[str]] = {}
    for name in names:
        cases.setdefault(name.partition("[")[0], []).append(name)
    chosen = set()
    for of_function in cases.values():
        last = len(of_function) - 1
        if last < count:
            chosen.update(of_function)
        else:
            chosen.update(of_function[round(number * last / (count - 1))] for number in range(count))
    return chosen
