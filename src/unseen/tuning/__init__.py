"""Hyperparameter search on tuning seeds."""
