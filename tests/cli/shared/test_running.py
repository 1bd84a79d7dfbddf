import os
import subprocess
import sys
import warnings

import pytest
from spacy.tokens import Doc, DocBin

from spacy_calib.cli.shared.examples import run_pipes
from tests.conftest import examples_for

READ = """
import sys, spacy
from pathlib import Path
from spacy_calib.cli.shared.examples import read_examples
print(len(read_examples(spacy.blank("xx"), Path(sys.argv[1]), False, silent=False)))
"""


@pytest.mark.skipif(os.name == "nt", reason="a terminal is made by os.openpty")
def test_a_progress_bar_on_a_terminal_loses_no_document(tmp_path, nlp):
    DocBin(docs=[Doc(nlp.vocab, words=["dog"], tags=["NOUN"]) for _ in range(7)]).to_disk(tmp_path / "gold.spacy")
    controller, terminal = os.openpty()
    drawn_at_each = os.environ | {"TQDM_MININTERVAL": "0"}
    command = [sys.executable, "-c", READ, str(tmp_path / "gold.spacy")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=terminal, env=drawn_at_each, check=True)
    assert int(done.stdout) == 7
    assert os.read(controller, 10)  # the bar was drawn
    os.close(controller)
    os.close(terminal)


def test_a_run_that_is_given_up_leaves_the_filters_of_warnings_alone(nlp):
    before = list(warnings.filters)
    done = run_pipes(nlp, examples_for(nlp, 3, seed=0), nlp.pipe_names, silent=True, title="")
    next(done)
    assert list(warnings.filters) == before
    warnings.filterwarnings("ignore", message="of another test")
    done.close()
    assert list(warnings.filters) != before
