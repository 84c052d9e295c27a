"""Studies: trials, grids of them, study files, deviations from the papers, and the catalogue."""

MOST_TRIALS = 1_000_000
"""The most trials of a grid, counted before any is left out, and the most seeds of a single training."""
