# Everything runs in .venv, made here from whatever Python 3.11 or newer is at hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint docs benchmarks clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages, in site/index.html; a broken link or a page left out of the list is an error.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site

benchmarks: $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[benchmarks]"
	$(BIN)/python -m benchmarks

$(STAMP): pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'pauca needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) site demo_output .pytest_cache .mypy_cache .ruff_cache .hypothesis
