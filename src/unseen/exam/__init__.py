"""The exam: a model on the test battery from the four papers' families. The package can be called: `unseen.exam(MODEL, DIR)`."""

from unseen.registry import make_callable

make_callable(__name__, "unseen.api:exam")
