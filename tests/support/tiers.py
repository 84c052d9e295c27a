"""The tiers of the tests: what `make test-fast` leaves out."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
# `make test-fast` leaves these tiers out; a folder stands for all tests in it. `make test` runs everything.
TIERS = {
    "docs": ("docs", "test_readme.py"),
    "ray": ("running/test_executor_ray.py", "running/test_ray_autoscaler.py"),
    "browser": ("report/test_page_browser.py",),
    "slow": (
        "benchmarks",
        "cli/test_cli.py",
        "cli/test_cli_claims.py",
        "cli/test_cli_exam.py",
        "cli/test_cli_run.py",
        "compare/test_identical.py",
        "exam",
        "kit",
        "models/backbones/test_backbone_stack.py",
        "models/gcog/test_gcog_stack.py",
        "models/test_compile.py",
        "report/figures/test_exam_figures.py",
        "report/figures/test_gcog_figures.py",
        "report/figures/test_rules_figures.py",
        "running/test_executor_local.py",
        "running/test_executor_slurm.py",
        "running/test_faults.py",
        "running/test_kill.py",
        "running/test_runs.py",
        "stats/test_coverage.py",
        "store/test_looking_runs_nothing.py",
        "store/test_store_faults.py",
        "store/test_store_growth.py",
        "studies/test_foreign_studies.py",
        "tasks/test_contract.py",
        "tasks/test_verify.py",
        "tasks/retrieval/test_retrieval_audit.py",
        "test_exam_in_python.py",
        "test_package.py",
        "test_your_model.py",
        "tracking",
        "training/test_stack_equals_solo.py",
        "tuning",
    ),
}
