import os
import subprocess
import sys
import warnings

import pytest
from spacy.tokens import Doc, DocBin

from spacy_calib.cli.shared.examples import run_pipes
from tests.conftest import examples_for

IMPORTS = "import pathlib, spacy, sys; from spacy_calib.cli.shared.examples import read_examples"
READ = f"{IMPORTS}; print(len(read_examples(spacy.blank('xx'), pathlib.Path(sys.argv[1]), False, silent=False)))"


@pytest.mark.skipif(os.name == "nt", reason="a terminal is made by os.openpty")
def test_a_progress_bar_on_a_terminal_loses_no_document(tmp_path, nlp):
    DocBin(docs=[Doc(nlp.vocab, words=["dog"], tags=["NOUN"]) for _ in range(7)]).to_disk(tmp_path / "gold.spacy")
    controller, terminal = os.openpty()
    command, drawn = [sys.executable, "-c", READ, str(tmp_path / "gold.spacy")], os.environ | {"TQDM_MININTERVAL": "0"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=terminal, env=drawn, check=True)
    assert (int(done.stdout), os.read(controller, 10) != b"") == (7, True)  # and the bar was drawn
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
