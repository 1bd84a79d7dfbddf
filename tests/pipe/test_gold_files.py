import numpy as np
import pytest

from spacy_calib.gold.reading import document_of, from_files
from spacy_calib.pipe.fitting import FitArguments, read_fit_inputs
from tests.conftest import examples_for, run_upstream

CONTEXT = {"@calib_contexts": "spacy-calib.Context.v1"}


@pytest.fixture
def files(nlp):
    """Two files, whose documents have the same names, two Docs each."""
    found = [run_upstream(nlp, examples_for(nlp, n, seed=seed)) for n, seed in ((80, 2), (40, 3))]
    for examples in found:
        for number, example in enumerate(examples):
            example.reference.user_data["calib_document"] = f"document {number // 2}"
    return found


def test_a_fit_knows_the_file_of_each_document_and_shares_none(nlp, files):
    calib = nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT})
    inputs = read_fit_inputs(calib, from_files(files), FitArguments())
    assert (inputs.n_docs, inputs.unit) == (60, "document")
    assert inputs.files.tolist() == [0] * 40 + [1] * 20
    assert inputs.doc_documents.tolist() == np.repeat(np.arange(60), 2).tolist()


def test_one_after_the_other_they_share_documents(nlp, files):
    calib = nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT})
    inputs = read_fit_inputs(calib, [*files[0], *files[1]], FitArguments())
    assert (inputs.n_docs, set(inputs.files.tolist())) == (40, {0})


def test_documents_without_a_name_stay_alone(nlp):
    examples = list(from_files([examples_for(nlp, 3, seed=2), examples_for(nlp, 2, seed=3)]))
    documents = [document_of(example) for example in examples]
    assert [document.file for document in documents] == [0, 0, 0, 1, 1]
    assert len(set(documents)) == 5
    assert documents == [document_of(example) for example in examples]


def test_files_change_no_score(nlp, files):
    """Their documents have names of their own, so that both fits know the same documents."""
    for number, examples in enumerate(files):
        for example in examples:
            example.reference.user_data["calib_document"] += f" of {number}"
    calib = nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT})
    scores = []
    for examples in ([*files[0], *files[1]], from_files(files)):
        calib.fit(examples)
        scores.append(calib.held_out.calibrated.tolist())
        assert calib.fit_info.docs == 60
    assert scores[0] == scores[1]
    assert calib.fit_info.conventions == []
