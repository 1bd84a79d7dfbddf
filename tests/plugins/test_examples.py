"""The examples in the docstrings of public classes and functions of plug-ins that need no pipeline."""

import pytest

from spacy_calib import Answer
from spacy_calib.plugins.report import plots
from tests.docstrings import run_examples

PLOTS = (plots.reliability_diagram, plots.compare_reliability, plots.plot_errors, plots.plot_coverage)


@pytest.mark.parametrize("target", [Answer, *PLOTS], ids=lambda target: target.__name__)
def test_the_examples_run(target):
    run_examples(target)
