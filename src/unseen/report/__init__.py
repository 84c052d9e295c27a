"""Figures and pages from records; never trains."""
