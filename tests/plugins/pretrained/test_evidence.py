"""Evidence of entities by hand, the choice of a map, and what is read from Docs of a real pipeline."""

from typing import Any

import numpy as np
import pytest
import spacy
from pretrain.entities import CONTRADICTIONS, SUPPORTS, evidence_names
from spacy.tokens import Doc

from spacy_calib.calibration.saved import make_part
from spacy_calib.calibration.steps import Predictions
from spacy_calib.context.words import Words
from spacy_calib.plugins.pretrained import evidence as module
from spacy_calib.plugins.pretrained.evidence import COLUMNS, EntityEvidence, EntityMap, SpanEvidence, _depths
from spacy_calib.plugins.pretrained.names import JOINERS, NameLists
from spacy_calib.registry import registered_maker
from spacy_calib.schema import InvalidState
from spacy_calib.types import Spans

LABELS = ("GPE", "PERSON")
# Two Docs of three tokens: [Ann of Ghana] [the Ghana sings], entities Ann, Ghana, the Ghana.
DOCS = ("Ann of Ghana", "the Ghana sings")
STARTS, ENDS, KINDS = np.array([0, 2, 3]), np.array([1, 3, 5]), np.array([1, 0, 0])
RAW = np.array([0.5, 0.8, 0.5])


def columns(**changed: Any) -> np.ndarray:
    """What is known of the six tokens; all was tagged and parsed."""
    known = {name: np.zeros(6) for name in COLUMNS} | {"tagged": np.ones(6), "parsed": np.ones(6), "letters": np.ones(6)}
    known["proper"] = np.array([0.9, 0.1, 0.8, 0.2, 0.6, 0.0])
    known["preposition"][1] = known["article"][3] = 1.0
    known["depth"] = np.array([0.0, 1.0, 2.0, 2.0, 1.0, 0.0])
    known["acronym"] = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    known["initial"], known["digit"], known["symbol"] = np.eye(6)[[0, 2, 3]]
    known["lower"], known["capitals"] = np.repeat([[1.0, 0.0], [0.0, 1.0]], 3, axis=1)
    known["places"], known["large_places"], known["first_names"] = np.eye(6)[[2, 4, 0]]
    known["places"][[0, 4]] = 1.0
    known["argument"] = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    return np.stack([(known | changed)[name] for name in COLUMNS], axis=1)


def words(table: np.ndarray) -> Words:
    nothing = np.zeros(6, dtype=np.uint64)
    shapes = np.zeros(6, dtype=np.intp)
    return Words(np.array([0, 3, 6]), nothing, nothing, shapes, np.ones(6, dtype=bool), {EntityEvidence.registered: table})


def spans(chosen: tuple[bool, ...] = (True, True, True)) -> Spans:
    return Spans(STARTS, ENDS, KINDS, np.full(4, 0.5), np.array([0.5, 0.5, 0.8]), np.array(chosen))


@pytest.mark.parametrize(("name", "expected"), [
    ("constant", [1, 1, 1]),
    ("log-odds", [0, np.log(4), 0]),
    ("path", [0, 0, np.log(4) / 4]),
    ("type*GPE", [0, 1, 1]),
    ("type*ORG", [0, 0, 0]),
    ("log-odds*GPE", [0, np.log(4), 0]),
    ("one word*PERSON", [1, 0, 0]),
    ("proper*PERSON", [np.log(9) / 4, 0, 0]),
    ("proper*GPE", [0, np.log(4) / 4, np.log(0.25) / 4]),  # the least proper word counts: "the" with .2
    ("proper before", [0, 0.1, 0]),  # before the first word of a Doc is nothing, though another Doc's word stands there
    ("proper after", [0.1, 0, 0]),
    ("preposition before*GPE", [0, 1, 0]),
    ("article", [0, 0, 1]),
    ("letters", [1, 1, 1]),
    ("argument", [0, 1, 1]),  # of the root: of "the Ghana" that is Ghana, which is nearer to the root
    ("acronym*PERSON", [1, 0, 0]),  # one word in capitals; the second Doc is in capitals as a whole
    ("initial*PERSON", [1, 0, 0]),
    ("symbol", [0, 0, 1]),
    ("digit", [0, 1, 0]),
    ("lower: log-odds", [0, np.log(4), 0]),  # of the first Doc
    ("capitals: type*GPE", [0, 0, 1]),
    ("place", [0, 1, 1]),  # the article takes no part
    ("large place", [0, 0, 1]),
    ("first name alone", [1, 0, 0]),
    ("person, but a place", [0, 0, 0]),  # a first name, too
])  # fmt: skip
def test_evidence_by_hand(name, expected):
    evidence = SpanEvidence(spans(), RAW, words(columns()), LABELS)
    assert evidence.column(name) == pytest.approx(expected)


@pytest.mark.parametrize("joiner", sorted(JOINERS))
def test_joiners_inside_a_name_have_no_say(joiner):
    """What is known of "Ann - Lee" is what is known of "Ann Lee", whatever tagger and parser say of the joiner."""
    lists = NameLists({"first_names": {"ann"}, "surnames": {"lee"}, "places": {"ann lee"}, "organizations": {"ann lee"}})
    random = np.random.default_rng(ord(joiner))
    first = COLUMNS[: COLUMNS.index("letters")]
    apart, names = random.random((4, len(first))), ["log-odds*PERSON", *SUPPORTS, *CONTRADICTIONS]
    names += [name for maps in evidence_names(LABELS).values() for name in maps]
    values = []
    for text in (["so", "Ann", "Lee", "sings"], ["so", "Ann", joiner, "Lee", "sings"]):
        rows = apart if len(text) == 4 else np.insert(apart, 2, [1.0, 1.0, *random.random(len(first) - 2)], axis=0)
        view = Words(np.array([0, len(text)]), *[np.zeros(len(text), dtype=np.uint64)] * 2, np.zeros(len(text), np.intp), np.ones(len(text), bool),
            {EntityEvidence.registered: np.hstack([rows, EntityEvidence().read_words(text, lists)])})  # fmt: skip
        ends = np.full(2, len(text) - 1)
        found = Spans(
            np.ones(2, np.intp), ends, np.array([0, 1]), np.full(2 * (len(text) - 2), 0.5), np.full(2, 0.5), np.ones(2, bool)
        )
        evidence = SpanEvidence(found, np.full(2, 0.7), view, LABELS)
        values.append([evidence.column(name).tolist() for name in names])
    assert values[0] == values[1]


def test_a_joiner_at_the_edge_of_an_entity_has_a_say():
    table = columns(joiner=np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    found = Spans(np.array([0]), np.array([3]), np.array([1]), np.full(3, 0.5), np.array([0.5]), np.array([True]))
    assert SpanEvidence(found, np.array([0.5]), words(table), LABELS).column("digit").tolist() == [1.0]


def fitted(**maps: dict[str, float]) -> EntityMap:
    step = EntityMap()
    step.labels_, step.maps_ = LABELS, {name.replace("_", ", "): table for name, table in maps.items()}
    return step


LISTED = {"listed": np.ones(6)}
THREE = fitted(ner_tagger_parser={"constant": 1.0}, ner_tagger={"constant": 2.0}, ner={"constant": 3.0, "type*GPE": -1.0})


def applied(step: EntityMap, table: np.ndarray, chosen: tuple[bool, ...] = (True, True, True)) -> list[float]:
    scores = step.apply(Predictions.of_spans(spans(chosen), RAW, words(table))).scores
    return np.log(scores / (1 - scores)).round(6).tolist()


def test_the_richest_map_whose_components_ran_is_used_document_by_document():
    first, second = np.repeat([1.0, 0.0], 3), np.repeat([0.0, 1.0], 3)
    assert applied(THREE, columns()) == [1.0, 1.0, 1.0]
    assert applied(THREE, columns(parsed=first)) == [1.0, 1.0, 2.0]
    assert applied(THREE, columns(tagged=first)) == [1.0, 1.0, 2.0]  # 3 - 1: a map without tagger
    assert applied(THREE, columns(tagged=second, parsed=np.zeros(6))) == [3.0, 2.0, 2.0]


def test_a_map_with_lists_is_used_where_there_are_lists():
    step = fitted(ner_lists={"constant": 4.0, "place": 1.0}, ner={"constant": 3.0})
    assert applied(step, columns()) == [3.0, 3.0, 3.0]
    assert applied(step, columns(**LISTED)) == [4.0, 5.0, 5.0]
    assert applied(step, columns(listed=np.repeat([1.0, 0.0], 3))) == [4.0, 5.0, 3.0]


def test_candidates_keep_their_scores():
    assert applied(THREE, columns(), (True, False, True)) == [1.0, round(float(np.log(4)), 6), 1.0]


def test_a_step_without_entities_changes_nothing():
    given = Predictions.of_spans(spans((False, False, False)), RAW, words(columns()))
    assert THREE.apply(given) is given


@pytest.mark.parametrize("part", [THREE, EntityEvidence({"places.1": "0"})])
def test_parts_are_rebuilt_from_their_state(part):
    again = make_part(part.state(), registered_maker)
    assert type(again) is type(part)
    assert again.state() == part.state()


def test_every_column_of_a_map_is_a_finite_number():
    names = evidence_names(("PERSON", "GPE", "ORG", "LOC", "FAC"))
    known = SpanEvidence(spans(), RAW, words(columns()), LABELS)
    assert all(np.isfinite(known.column(name)).all() for own in (*names.values(), SUPPORTS, CONTRADICTIONS) for name in own)


@pytest.mark.parametrize(("text", "expected"), [
    (["ann", "met", "mr.", "lee", "!"], (1, 0)),
    (["Ann", "met", "Lee"], (0, 0)),
    (["ANN", "MET", "IBM", "5"], (0, 1)),
    (["Ann", "Lee", "IBM"], (0, 0)),
    (["Ann", "Lee"], (0, 0)),
    ([*"ABCDEFGHI", "x"], (0, 1)),  # nine of ten
    ([*"ABCDEFGH", "x"], (0, 0)),  # eight of nine
])  # fmt: skip
def test_the_form_of_a_text(text, expected):
    table = EntityEvidence().read_words(text, None)
    form = dict(zip(COLUMNS[9:], table.T, strict=True))
    assert [(form["lower"][i], form["capitals"][i]) for i in (0, -1)] == [expected] * 2


def test_a_doc_without_tokens_has_no_rows():
    assert EntityEvidence().read_words([], None).shape == (0, len(COLUMNS) - 9)
    assert EntityEvidence().read_words([], NameLists({})).shape == (0, len(COLUMNS) - 9)


def test_words_are_read_while_another_thread_empties_the_cache(monkeypatch):
    evidence, words = EntityEvidence(), ["Ann", "met", "Lee"]
    expected, read_word = EntityEvidence().read_words(words, None), module._read_word

    def read_and_empty(word):
        evidence._word_rows = {}
        return read_word(word)

    monkeypatch.setattr(module, "_read_word", read_and_empty)
    np.testing.assert_array_equal(evidence.read_words(words, None), expected)


@pytest.mark.parametrize(("word", "expected"), [
    ("IBM", {"letters", "acronym"}), ("J.", {"letters", "initial"}), ("@ann", {"symbol"}), ("C3PO", {"digit"}),
    ("http://ghana.com", {"symbol", "address"}), ("EUROPE", {"letters"}),
])  # fmt: skip
def test_the_shape_of_a_word(word, expected):
    row = dict(zip(COLUMNS[9:], EntityEvidence().read_words(["Ann", word], None)[1], strict=True))
    assert {name for name in ("letters", "address", "acronym", "initial", "symbol", "digit") if row[name]} == expected


def test_what_is_read_of_docs_is_what_spacy_says(english):
    docs = list(english.pipe(["Ann Lee's aunt visited the north of Ghana.", "See http://ghana.com: Paris Hilton in Paris."]))
    table = dict(zip(COLUMNS, EntityEvidence().read(english, docs).T, strict=True))
    tokens = [token for doc in docs for token in doc]
    tags = [english.get_pipe("tagger").labels.index(tag) for tag in ("NNP", "NNPS")]
    proper = np.concatenate([scores[:, tags].sum(1) for scores in _tagger_scores(english, docs)])
    assert table["proper"] == pytest.approx(proper, abs=1e-6)
    assert table["noun"].tolist() == [token.tag_ in {"NN", "NNS", "NNP", "NNPS"} for token in tokens]
    assert table["possessive"].tolist() == [token.text == "'s" for token in tokens]
    assert table["address"].tolist() == ["ghana.com" in token.text for token in tokens]
    assert table["article"].tolist() == [token.lower_ == "the" for token in tokens]
    offset = 0
    for doc in docs:
        for entity in doc.ents:
            depths = table["depth"][offset + entity.start : offset + entity.end]
            assert entity.start + int(depths.argmin()) == entity.root.i
        offset += len(doc)


@pytest.mark.parametrize(("words", "heads", "expected"), [
    (["#", "Ghana", "fans", "sing"], [1, 2, 3, 3], [3, 2, 1, 0]),  # three arcs up is as deep as it can be
    (["fans", "#", "Ghana", "sing"], [3, 3, 0, 3], [1, 3, 2, 0]),  # the word is the root of "# Ghana", though it is deeper
    (["fans", "#", "Ghana", "sing"], [3, 3, 1, 3], [1, 1, 2, 0]),  # a word depends on the punctuation
    (["#", "Ghana"], [0, 0], [0, 1]),  # the root of a sentence is the root
])  # fmt: skip
def test_punctuation_that_nothing_depends_on_is_no_root_of_a_name(words, heads, expected):
    doc = Doc(spacy.blank("en").vocab, words=words, heads=heads, deps=["dep"] * len(words))
    assert _depths(doc).tolist() == expected
    for span in (doc[start:end] for start in range(len(doc)) for end in range(start + 1, len(doc) + 1)):
        assert span.start + int(_depths(doc)[span.start : span.end].argmin()) == span.root.i


def _tagger_scores(nlp: Any, docs: list[Doc]) -> list[np.ndarray]:
    """Softmax by hand of the head's output."""
    logits = nlp.get_pipe("tagger").model.predict(docs)
    exponents = [np.exp(np.asarray(one, dtype=float) - one.max(1, keepdims=True)) for one in logits]
    return [one / one.sum(1, keepdims=True) for one in exponents]


@pytest.mark.parametrize("name", ["nothing", "middle: type", "type*GPE: digit", "lower: nothing*GPE", ""])
def test_a_state_with_evidence_that_nobody_computes_is_refused(name):
    state = {"labels_": list(LABELS), "maps_": {"ner": {"constant": 1.0, name: 1.0}}}
    with pytest.raises(InvalidState, match="is unknown"):
        EntityMap().load_learned(state)
    state["maps_"]["ner"] = {name: 1.0 for names in evidence_names(LABELS).values() for name in names}
    assert EntityMap().load_learned(state).maps_["ner"]["lower: log-odds"] == 1.0
