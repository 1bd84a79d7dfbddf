"""What `expect` says where it cannot tell, by what there is too little of."""

import pytest

from spacy_calib.plugins.expect.expect_output import ADAPTED, TOO_FEW_TO_TELL, describe_shortage


@pytest.mark.parametrize(("n", "kind", "sentence"), [
    (40, ADAPTED, "the pipe was adapted to 40 documents, which"),
    (40, "fitted", "the pipe was fitted on 40 documents, which"),
    (4000, "fitted", TOO_FEW_TO_TELL),
])  # fmt: skip
def test_few_labelled_documents_are_not_called_few_texts(n, kind, sentence):
    result = {"learned_from": {"unit": "document", "n": n, "kind": kind}, "documents": 2000}
    assert sentence in describe_shortage(result)
