"""The exam: a model on the test battery of all four families. The package can be called: `unseen.exam(MODEL, DIR)`."""

from unseen.callable_package import make_callable

make_callable(__name__, "unseen.api:exam")
