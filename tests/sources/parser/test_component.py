"""calib_parser is spaCy's parser in all but what it remembers."""

import pickle
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import fix_random_seed

from spacy_calib.sources.parser.source import CalibDependencyParser, kept_readings
from tests.sources.parser import arcs_of, gold_examples, trained, with_ours

TEXT = "dog saw king with duck . duck met dog"


def test_same_weights_and_config(tmp_path):
    files: dict[str, Any] = {}
    for factory in ("parser", "calib_parser"):
        nlp = trained(factory)
        nlp.to_disk(tmp_path / factory)
        config = (tmp_path / factory / "config.cfg").read_text()
        assert f'factory = "{factory}"' in config
        held = {p.name: p.read_bytes() for p in (tmp_path / factory / "parser").rglob("*") if p.is_file()}
        files[factory] = config.replace(f'factory = "{factory}"', ""), held
    assert files["parser"] == files["calib_parser"]


def test_readings_are_of_the_doc_as_it_is():
    nlp = trained("calib_parser")
    doc = nlp(TEXT)
    reading = kept_readings(doc, "parser")
    assert reading is not None
    assert reading.arcs[:, 0].tolist() == [token.head.i - token.i for token in doc]
    assert kept_readings(doc, "other") is None
    assert kept_readings(nlp.make_doc(TEXT), "parser") is None
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    assert kept_readings(doc, "parser") is None


def test_copies_and_streams_parse_alike():
    nlp = trained("calib_parser")
    stock, texts = trained("parser"), [TEXT, "", "dog", "duck saw dog ."]
    wanted = arcs_of(list(stock.pipe(texts)))
    assert arcs_of(list(nlp.pipe(texts))) == wanted
    again = pickle.loads(pickle.dumps(nlp))
    assert isinstance(again.get_pipe("parser"), CalibDependencyParser)
    assert arcs_of([again(text) for text in texts]) == wanted


def test_it_trains_on():
    """Its own weights are learned as spaCy's are."""
    stock = trained("parser")
    ours = with_ours(stock)
    for nlp in (stock, ours):
        fix_random_seed(0)
        examples = gold_examples(nlp, 8, seed=7)
        nlp.update(examples, sgd=nlp.resume_training())
    docs = [Doc(nlp.vocab, words=TEXT.split()) for nlp in (stock, ours)]
    scores = [nlp.get_pipe("parser").model.get_ref("upper").get_param("W") for nlp in (stock, ours)]
    assert np.allclose(*scores, atol=1e-5)
    assert arcs_of([stock(docs[0])]) == arcs_of([ours(docs[1])])
