# Everything runs in .venv, made here from whatever Python 3.11 or newer is at hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
INSTALL := -m pip install --quiet --disable-pip-version-check

# Tests run in as many processes as there are cores, with one thread of the BLAS in each, for threads of several processes are
# in each other's way. The quick part, which runs once more on other kernels, has threads as a user has them: the pages, whose
# figures are printed, and tests of moves and minima that rounding may decide.
WORKERS ?= auto
SHARE := -n $(WORKERS) --dist worksteal
ONE_THREAD := OPENBLAS_NUM_THREADS=1
QUICK := README.md docs tests/subsets/test_least_squares.py tests/methods/test_papers.py tests/methods/test_methods.py tests/solvers

# Tests start many short processes: none should compile the package anew, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=

# The oldest Python that pyproject.toml allows has wheels of the oldest packages it allows.
LOWEST_PYTHON ?= python3.11
LOWEST := .venv-lowest

.PHONY: demo test campaign test-lowest test-cores package lint docs benchmarks papers clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest $(SHARE)

# Random trials of everything, for an hour or HOURS; what is in campaign_output/results.jsonl is not run again.
HOURS ?= 1
campaign: $(STAMP)
	$(ONE_THREAD) $(BIN)/python tests/campaign/run.py --hours $(HOURS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The lowest versions that pyproject.toml allows, in an environment of their own.
test-lowest:
	$(LOWEST_PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python .ci/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python $(INSTALL) -e ".[test]" -c $(LOWEST)/constraints.txt
	$(ONE_THREAD) $(LOWEST)/bin/python -m pytest $(SHARE)

# The quick part once more as on other processors: sums are rounded differently there.
test-cores: $(STAMP)
	set -e; for core in $$($(BIN)/python .ci/cores.py); do \
	    echo "As on $$core:"; OPENBLAS_CORETYPE=$$core $(BIN)/python -m pytest $(SHARE) $(QUICK); \
	done

# Wheel and sdist are built, compared, and tried in an environment without extras.
package: $(STAMP)
	$(BIN)/python .ci/package.py

# The pages, in site/index.html; a broken link or a page left out of the list is an error.
docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site

benchmarks: $(STAMP)
	$(BIN)/python $(INSTALL) -e ".[benchmarks]"
	$(BIN)/python -m benchmarks

# The tables and figures of the papers, on the data in DATA; what is finished in papers_output is not computed again.
papers: $(STAMP)
	$(BIN)/python $(INSTALL) -e ".[benchmarks]"
	$(BIN)/python -m benchmarks.papers --data $(DATA)

$(STAMP): pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'pauca needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) -e ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) $(LOWEST) site demo_output .pytest_cache .mypy_cache .ruff_cache .hypothesis
