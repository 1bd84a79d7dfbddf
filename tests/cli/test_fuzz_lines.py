"""Made-up command lines end in a sentence, never in a traceback: a sample of scripts/fuzz_cli.py, and those that once did not."""

import importlib
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.training import Example

from spacy_calib.cli.shared.examples import data_files, run_pipes, text_files
from spacy_calib.cli.shared.writing import write_pipeline
from spacy_calib.errors import CalibError, calib_error
from tests.forked import in_own_process

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_made_up_command_lines(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    fuzz_cli = importlib.import_module("fuzz_cli")
    seen, bad, n_called = fuzz_cli.fuzz(range(30), tmp_path / "fuzz")
    assert bad == {}
    assert (sum(seen.values()), n_called >= 15) == (30, True)


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_root_is_no_output(force, tmp_path):
    from spacy_calib.cli.shared.outputs import check_folder

    with pytest.raises(CalibError, match=r"\[C054\] The output / exists|\[C055\] Cannot write the output /"):
        check_folder(Path("/"), bool(force))


@Language.component("fails_at_words")
def fails_at_words(doc):
    """A component that fails as one with damaged weights does, or with a sentence of ours."""
    if doc.text == "ours":
        raise calib_error("C004", what="nan")
    raise KeyError("no such weight")


@pytest.mark.parametrize("n_process", [1, 2])
@pytest.mark.parametrize(
    ("text", "code", "words"),
    [("any", "C490", r"A component of the pipeline fails \(KeyError: 'no such weight'\)"), ("ours", "C004", "nan")],
)
def test_a_component_that_fails_is_a_sentence(n_process, text, code, words):
    nlp = spacy.blank("xx")
    nlp.add_pipe("fails_at_words")
    examples = [Example(nlp.make_doc(text), nlp.make_doc(text))]
    with pytest.raises(CalibError, match=words) as error:
        list(run_pipes(nlp, examples, nlp.pipe_names, silent=True, title="", n_process=n_process))
    assert error.value.code == code


def test_a_component_that_cannot_be_saved_leaves_no_folder(tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer").punct_chars = {"\ud805"}
    with pytest.raises(CalibError, match=r"\[C490\] A component of the pipeline fails \(UnicodeEncodeError"):
        write_pipeline(nlp, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("list_files", [data_files, text_files])
@in_own_process
def test_a_folder_that_is_removed_while_it_is_read(list_files, tmp_path, monkeypatch):
    def fail(folder, pattern):
        raise FileNotFoundError(2, "No such file or directory", str(folder / "gone"))

    monkeypatch.setattr(Path, "rglob", fail)
    with pytest.raises(
        CalibError, match=r"\[C491\] The folder .*gone of the data cannot be read \(No such file or directory\)"
    ):
        list_files(tmp_path)
