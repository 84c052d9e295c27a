"""Analyses of single task families: what they measure of trained models, beyond accuracy."""
