"""Figures and pages from records, without training. The package can be called: `unseen.report(DIR)` writes a page."""

from unseen.registry import make_callable

make_callable(__name__, "unseen.report.page:write_page")
