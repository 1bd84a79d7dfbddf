"""Decoding in the open gives spaCy's arcs, and the probabilities of a slow second implementation over spaCy's own validity rules."""

from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc
from thinc.api import NumpyOps

from spacy_calib.errors import CalibError
from spacy_calib.sources.parser import decoding
from spacy_calib.sources.parser.decoding import arc_labels, decode, read_actions
from tests.sources.device import DeviceOps
from tests.sources.ner import SHAPES, Shape, docs_of, random_drafts, random_pipeline
from tests.sources.parser import LABELS, gold_examples, parse, random_parser, trained, twins


def slowly(parser: Any, doc: Doc) -> dict[str, np.ndarray]:
    """The same of one Doc, transition by transition: `ArcProbabilities` as a dict, and the heads."""
    n, names = len(doc), parser.move_names
    columns = {name: np.ones(n) for name in ("arc", "head", "no_other_head", "path", "minimum")}
    step_model = parser.model.predict([doc])
    (state,) = parser.moves.init_batch([doc])
    while not state.is_final():
        scores = step_model.predict([state])
        valid = np.array([bool(parser.moves.is_valid(state, name)) for name in names])
        odds = np.where(valid, np.exp(scores[0].astype(float) - scores[0].max()), 0.0)
        probabilities = odds / odds.sum()
        s0, b0 = state.S(0), state.B(0)
        transition = int(np.argmax(np.where(valid, scores[0], -np.inf)))
        of_move = {move: sum(p for p, name in zip(probabilities, names, strict=True) if name[0] == move) for move in "SDLRB"}
        move_probability = of_move[names[transition][0]]
        for token, move in ((s0, "L"), (b0, "R")):
            if token < 0:
                continue
            columns["path"][token] *= move_probability
            columns["minimum"][token] = min(columns["minimum"][token], move_probability)
            if names[transition][0] == move:
                columns["head"][token], columns["arc"][token] = move_probability, probabilities[transition]
            else:
                columns["no_other_head"][token] *= 1 - of_move[move]
        parser.transition_states([state], scores)
    return {**columns, "heads": np.array([state.H(i) for i in range(n)])}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_arcs_as_spacy(shape):
    """Random weights, preset sentence starts, white space, empty Docs, labels to be deprojectivized."""
    drafts = random_drafts(25, seed=3)
    stock, ours = twins(shape)
    expected = parse(stock, docs_of(drafts, stock.vocab))
    assert parse(ours, docs_of(drafts, ours.vocab)) == expected
    one_by_one = [parse(ours, [doc])[0] for doc in docs_of(drafts, ours.vocab)]
    assert one_by_one == expected
    assert len({dep for doc in expected for _, dep, _ in doc}) > 3


def put_back(parser: Any) -> None:
    """Let it shift as long as it may, and then put words back from the stack, which may be shifted again when they got a dependent."""
    upper = parser.model.get_ref("upper")
    upper.set_param(
        "b", upper.get_param("b") + [{"S": 8.0, "D": 4.0, "L": 1.0}.get(name[0], 0.0) for name in parser.move_names]
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("change", [lambda parser: None, put_back], ids=["as it is", "puts back"])
def test_same_probabilities_as_step_by_step(seed, change):
    nlp = random_parser(Shape(maxout_pieces=2), seed)
    parser = nlp.get_pipe("parser")
    for node in parser.model.walk():  # smaller weights: probabilities that are neither 0 nor 1
        for name in node.param_names:
            node.set_param(name, node.get_param(name) * 0.3)
    change(parser)
    docs = [doc for doc in docs_of(random_drafts(12, seed=seed), nlp.vocab) if len(doc)]
    states, probabilities = decode(parser, docs, read_actions(parser.moves))
    first = 0
    for doc, state in zip(docs, states, strict=True):
        expected, of_doc = slowly(parser, doc), probabilities.slice(first, first + len(doc))
        first += len(doc)
        assert [state.H(i) for i in range(len(doc))] == expected.pop("heads").tolist()
        for name, values in expected.items():
            assert getattr(of_doc, name) == pytest.approx(values, abs=1e-3), name


def test_long_batches_are_summed_up_in_parts(monkeypatch):
    nlp = trained()
    parser, docs = nlp.get_pipe("parser"), [example.predicted for example in gold_examples(nlp, 6, seed=4)]
    _, whole = decode(parser, docs, read_actions(parser.moves))
    monkeypatch.setattr(decoding, "_CELLS", 1)
    _, parts = decode(parser, docs, read_actions(parser.moves))
    for name, values in vars(whole).items():
        assert getattr(parts, name) == pytest.approx(values), name


def test_joined_tokens():
    """A parser that learned to merge tokens may join neighbours only."""
    nlp = random_parser()
    parser = nlp.get_pipe("parser")
    parser.add_label("subtok")
    docs = docs_of(random_drafts(8, seed=5), nlp.vocab)
    stock = [[state.H(i) for i in range(len(doc))] for doc, state in zip(docs, parser.predict(docs), strict=True)]
    states, _ = decode(parser, docs, read_actions(parser.moves))
    assert [[state.H(i) for i in range(len(doc))] for doc, state in zip(docs, states, strict=True)] == stock


@pytest.mark.parametrize("maxout_pieces", [1, 2])
def test_decoding_sends_no_more_to_a_gpu_for_more_steps(maxout_pieces):
    """And the probabilities are those of the CPU, bit by bit."""
    nlp = random_parser(Shape(maxout_pieces=maxout_pieces))
    parser = nlp.get_pipe("parser")
    lower, actions = parser.model.get_ref("lower"), read_actions(parser.moves)
    uploads = []
    for n_tokens in (3, 90):
        docs = [Doc(nlp.vocab, words=[f"w{i % 7}" for i in range(n_tokens)])]
        lower.ops = NumpyOps()
        _, on_cpu = decode(parser, docs, actions)
        lower.ops = ops = DeviceOps()
        _, on_device = decode(parser, docs, actions)
        uploads.append(ops.n_uploads)
        for name, values in vars(on_cpu).items():
            assert np.array_equal(getattr(on_device, name), values), name
    assert uploads[0] == uploads[1]


def test_labels_without_decoration():
    labels = arc_labels(read_actions(random_parser().get_pipe("parser").moves))
    assert {"ROOT", "obl", "dep"} | {label for label in LABELS if "||" not in label} <= set(labels)
    assert not any("||" in label for label in labels)


def test_nan_in_the_weights_names_the_document():
    nlp = random_parser()
    parser = nlp.get_pipe("parser")
    node = parser.model.get_ref("upper")
    node.set_param("W", node.get_param("W") * np.nan)
    with pytest.raises(CalibError, match=r"\[C024\].*'parser'.*'w1 w2 '"):
        decode(parser, [Doc(nlp.vocab, words=["w1", "w2"])], read_actions(parser.moves))


def test_states_of_another_kind():
    ner = random_pipeline().get_pipe("ner")
    with pytest.raises(CalibError, match=r"\[C271\].*by 3 tokens.*8 or 13"):
        decode(ner, [Doc(ner.vocab, words=["w1"])], read_actions(twins()[0].moves))
