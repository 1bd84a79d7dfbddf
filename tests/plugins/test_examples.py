"""The examples in the docstrings of public classes and functions of plug-ins that need no pipeline."""

import pytest

from spacy_calib import Answer, TagCalibrator
from spacy_calib.plugins.report import plots
from spacy_calib.plugins.spark.score_rows import score_rows
from tests.docstrings import run_examples

PLOTS = (plots.reliability_diagram, plots.plot_errors, plots.plot_coverage)


@pytest.mark.parametrize("target", [Answer, TagCalibrator, score_rows, *PLOTS], ids=lambda target: target.__name__)
def test_the_examples_run(target):
    run_examples(target)
