"""Commands as a user types them."""

import shlex

from spacy_calib.cli.shared.shell import shell_line
from tests.docstrings import run_examples


def test_the_example():
    run_examples(shell_line)


def test_a_shell_reads_the_same_words():
    line = shell_line("fit", "it's here", "a;b", options={"--map": "A B=C", "--force": True, "--code": None, "--doc-key": ""})
    assert shlex.split(line) == ["python", "-m", "spacy", "calib", "fit", "it's here", "a;b", "--map", "A B=C", "--force"]
