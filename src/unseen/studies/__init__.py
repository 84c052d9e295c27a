"""Trials, the store that keeps their records, and the runner that fills it."""
