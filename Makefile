# Two commands matter: `make demo` and `make test`. Both work on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS := 1
# Processes that tests start would compile the package again and again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast pytest lint bench docs docs-serve clean

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/quickstart.py --out demo

# mypy is one long process: the tests begin beside it.
test: $(VENV)/dev.stamp
	$(MAKE) --jobs 2 lint pytest

# The unit tests alone, for use while writing, with at most three cases of every parametrised test.
test-fast: $(VENV)/dev.stamp
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not docs and not ray and not browser" --cases 3

pytest: $(VENV)/dev.stamp
	$(BIN)/pytest -n 2 --dist worksteal

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks --json benchmarks/latest.json

# The variable turns off a notice of the theme's about its successor.
docs: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

clean:
	rm -rf $(VENV) demo site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# Exact versions come from constraints.txt: an open range on PyTorch would pull gigabytes of CUDA packages.
$(VENV)/demo.stamp: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[report]"
	touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
