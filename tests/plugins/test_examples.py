"""The examples in the docstrings of public classes and functions of plug-ins."""

import doctest

import pytest

from spacy_calib import Answer


@pytest.mark.parametrize("target", [Answer], ids=lambda target: target.__name__)
def test_the_examples_run(target):
    (examples,) = doctest.DocTestFinder(recurse=False).find(target, module=False, globs={target.__name__: target})
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert (result.failed, result.attempted) == (0, len(examples.examples))
    assert result.attempted
