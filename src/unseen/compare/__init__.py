"""Compare result directories. The package can be called: `unseen.compare(DIR, DIR)` returns a table."""

from unseen.registry import make_callable

make_callable(__name__, "unseen.api:compare")
