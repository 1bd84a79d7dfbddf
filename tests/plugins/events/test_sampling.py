"""Whole annotations drawn by calibrated scores, and the Docs that they make."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token

from spacy_calib.annotations import CatsAnnotation, MappedAnnotation, get_annotation
from spacy_calib.calibration.tokens import CalibratedEntries
from spacy_calib.doc.blocks import add_block
from spacy_calib.doc.cutting import cut
from spacy_calib.doc.write import CalibratedBatch, CalibratedSpans, build_blocks
from spacy_calib.errors import CalibError
from spacy_calib.types import Marginals, Spans
from tests.conftest import made_up_sentences, revive
from tests.plugins.events.test_draws import agree
from tests.sentences import says

NLP = spacy.blank("xx")
N = 4000


def write(doc: Doc, layer: str, scores: list[dict[str, float]], spans: list[tuple] = ()) -> Doc:
    """Put a block on a Doc, as a pipe does. scores: Label -> calibrated score of each unit. spans: (start, end, label, score, whether it is chosen)."""
    labels = tuple(dict.fromkeys([*(label for own in scores for label in own), *(one[2] for one in spans)]))
    rows = np.repeat(np.arange(len(scores)), [len(own) for own in scores]).astype(np.intp)
    tags = np.array([labels.index(label) for own in scores for label in own], dtype=np.intp)
    calibrated = np.array([score for own in scores for score in own.values()], dtype=np.float64)
    marginals = Marginals(rows, tags, np.full(len(rows), 0.5), len(scores))
    held = None
    if spans:
        starts, ends, kinds = (np.array([one[i] for one in spans], dtype=np.intp) for i in (0, 1, 3))
        kinds = np.array([labels.index(one[2]) for one in spans], dtype=np.intp)
        own = np.array([one[3] for one in spans])
        chosen = np.array([one[4] for one in spans])
        parts = Spans(starts, ends, kinds, np.full((ends - starts).sum(), 0.5), own, chosen)
        held = CalibratedSpans(parts, labels, own, own, np.full(len(spans), -1, dtype=np.int8), "exact")
    batch = CalibratedBatch(
        CalibratedEntries(marginals, calibrated), get_annotation(layer), labels, get_annotation(layer).hashes(doc), held
    )
    add_block(doc.user_data, "calib", build_blocks([doc], batch)[0])
    return doc


def tagged(words="they fish now") -> Doc:
    doc = Doc(NLP.vocab, words=words.split(), tags=["PRON", "VERB", "ADV"])
    return write(doc, "tag", [{"PRON": 0.9, "NOUN": 0.05}, {"VERB": 0.7, "NOUN": 0.6}, {}])


def test_tags_have_their_calibrated_probability():
    doc = tagged()
    draws = doc._.calib.sample(N, seed=1)
    assert len(draws) == N
    assert draws.labels == ("PRON", "NOUN", "VERB")
    shares = np.array([(draws.codes == code).mean(axis=0) for code in range(3)]).T
    agree(shares, [[0.9, 0.05, 0], [0, 0.6 / 1.3, 0.7 / 1.3], [0, 0, 0]])
    agree((draws.codes == -1).mean(axis=0), [0.05, 0, 1])
    assert draws.scale.tolist() == [1, pytest.approx(1 / 1.3), 1]
    assert draws.has_scores.tolist() == [True, True, False]


def test_a_draw_makes_a_doc_with_its_tags():
    doc = tagged()
    draws = doc._.calib.sample(60, seed=1)
    names = (*draws.labels, "")
    for draw, copy in zip(draws, draws.docs(), strict=True):
        wanted = [names[code] for code in draws.codes[draw.number]]
        assert [token.tag_ for token in copy] == [*wanted[:2], "ADV"]  # what has no scores keeps its label
        assert copy.text == doc.text
        assert copy[0]._.calib_score == {"PRON": 0.9, "NOUN": 0.05, "": None}[copy[0].tag_]
    assert [token.tag_ for token in doc] == ["PRON", "VERB", "ADV"]
    assert len({copy[0].tag_ for copy in draws.docs()}) == 3
    assert [draw.number for draw in (draws[-1], *draws[:2])] == [59, 0, 1]
    with pytest.raises(IndexError):
        draws[60]


@pytest.mark.parametrize(
    ("layer", "label", "read"),
    [
        ("pos", "NOUN", lambda token: token.pos_),
        ("lemma", "be", lambda token: token.lemma_),
        ("dep", "obj", lambda token: token.dep_),
        ("sent", "S", lambda token: "S" if token.is_sent_start else ""),
        ("morph", "Number=Sing|POS=NOUN", lambda token: f"{token.morph}|POS={token.pos_}" if token.pos_ else ""),
        ('tag {"A": "NN"}', "NN", lambda token: token.tag_),
        ("_.drawn_note", "x", lambda token: token._.drawn_note),
    ],
)
def test_every_kind_of_label_is_written_and_erased(layer, label, read):
    Token.set_extension("drawn_note", default=None, force=True)
    doc = write(Doc(NLP.vocab, words=["a", "b"]), layer, [{}, {label: 0.5}])
    draws = doc._.calib.sample(20, seed=0)
    found = [read(copy[1]) for copy in draws.docs()]
    assert found == [label if code == 0 else "" for code in draws.codes[:, 1]]
    assert set(found) == {label, ""}


def test_scores_of_a_fitted_tagger(trained_bytes):
    nlp = revive(trained_bytes)
    nlp.add_pipe("calib")
    texts = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(6, seed=3)]
    with pytest.warns(UserWarning, match="CW01"):
        alone = [nlp(text) for text in texts]
    batch = list(nlp.pipe(texts, batch_size=3))
    packed = DocBin(docs=batch, store_user_data=True).to_bytes()
    for same in (batch, [doc.copy() for doc in batch], list(DocBin().from_bytes(packed).get_docs(nlp.vocab))):
        for one, other in zip(alone, same, strict=True):
            assert (one._.calib.sample(20, seed=4).codes == other._.calib.sample(20, seed=4).codes).all()
    joined = Doc.from_docs(batch)
    wanted = joined._.calib
    draws = wanted.sample(N, seed=0)
    dense = wanted.to_dense(list(draws.labels))
    shares = np.array([(draws.codes == code).mean(axis=0) for code in range(len(draws.labels))]).T
    agree(shares, dense * draws.scale[:, None])
    part = cut(joined, 2, 9)
    assert part._.calib.sample(5, seed=0).codes.shape == (5, 7)
    assert [len(copy) for copy in part._.calib.sample(2).docs()] == [7, 7]


def test_a_doc_without_words():
    doc = write(Doc(NLP.vocab), "tag", [])
    assert doc._.calib.sample(3).codes.shape == (3, 0)
    assert [len(copy) for copy in doc._.calib.sample(3).docs()] == [0, 0, 0]


def test_a_doc_without_scores_has_nothing_to_draw_from():
    doc = tagged()
    assert Doc(NLP.vocab, words=["a"])._.calib is None
    draws = doc._.calib.sample(2)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[:2])
    with pytest.raises(CalibError, match="C414"):
        draws[0].doc(Doc(NLP.vocab, words=["they", "fish"]))


def test_draws_are_not_written_on_tokens_that_were_merged_or_cut_otherwise_since():
    doc = Doc(NLP.vocab, words=["in", "New", "York", "Ann", "sang"], spaces=[True] * 4 + [False])
    doc.ents = [Span(doc, 3, 4, "PER")]
    write(doc, "ner", [{} for _ in doc], [(3, 4, "PER", 1.0, True)])
    draws = doc._.calib.sample(1)
    assert [ent.text for ent in draws[0].doc().ents] == ["Ann"]
    # Other tokens, as many, of the same text.
    other = Doc(NLP.vocab, words=["in", "New", "York", "Ann sa", "ng"], spaces=[True] * 3 + [False] * 2)
    assert (other.text, len(other)) == (doc.text, len(doc))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    for onto in (None, other):
        with pytest.raises(CalibError, match="C414"):
            draws[0].doc(onto)


def test_the_same_seed_draws_the_same_and_texts_do_not_depend_on_each_other():
    first, again = (tagged()._.calib.sample(200, seed=5).codes for _ in range(2))
    assert (first == again).all()
    assert (first[:7] == tagged()._.calib.sample(7, seed=5).codes).all()
    assert (first != tagged()._.calib.sample(200, seed=6).codes).any()
    assert (first != tagged("we fish now")._.calib.sample(200, seed=5).codes).any()


def test_bad_input_is_said():
    with pytest.raises(CalibError, match=r"C001.*\bn\b"):
        tagged()._.calib.sample(-1)
    heads = write(Doc(NLP.vocab, words=["a", "b"]), "head", [{"obj": 0.5}, {"ROOT": 0.5}])
    with pytest.raises(CalibError, match=says("C410")):
        heads._.calib.sample(1)
    parsed = Doc(NLP.vocab, words=["a", "b"], heads=[0, 0], deps=["ROOT", "x"])
    draws = write(parsed, "sent", [{}, {"S": 1.0}])._.calib.sample(1)
    assert draws.codes.tolist() == [[-1, 0]]
    with pytest.raises(CalibError, match="C411.*parse"):
        draws[0].doc()


def entities() -> Doc:
    """ "Ann" is unscored, "New York" is chosen, "York" and "York City" are candidates, and one lies across Ann."""
    doc = Doc(NLP.vocab, words=["Ann", "saw", "New", "York", "City", "and", "Paris"])
    doc.set_ents([Span(doc, 0, 1, "PER"), Span(doc, 2, 4, "LOC", span_id="ny"), Span(doc, 6, 7, "LOC")])
    spans = [(2, 4, "LOC", 0.6, True), (6, 7, "LOC", 0.8, True), (3, 4, "PER", 0.1, False), (3, 5, "LOC", 0.25, False)]
    return write(doc, "ner", [{"O": 1.0}] * 7, [*spans, (0, 2, "LOC", 0.3, False)])


def test_entities_have_their_calibrated_probability_and_never_overlap():
    draws = entities()._.calib.sample(N, seed=2)
    wanted = {(2, 4): 0.6, (6, 7): 0.8, (3, 4): 0.1, (3, 5): 0.25}
    assert {(span.start, span.end) for span in draws.spans} == wanted.keys()
    agree(draws.in_draw.mean(axis=0), [wanted[span.start, span.end] for span in draws.spans])
    assert (draws.scale == 1).all()
    counts = Counter()
    for copy in map(draws.__getitem__, range(300)):
        doc = copy.doc()
        counts.update((ent.start, ent.end, ent.label_, ent.id_) for ent in doc.ents)
        assert doc.has_annotation("ENT_IOB")
    assert counts[0, 1, "PER", ""] == 300  # what has no score stays
    assert counts[2, 4, "LOC", "ny"] == draws.in_draw[:300, [s.start for s in draws.spans].index(2)].sum()


def test_tokens_whose_entities_are_not_known_stay_unknown():
    doc = Doc(NLP.vocab, words=["a", "b", "c"], ents=["B-PER", "O", ""])
    copy = write(doc, "ner", [{}] * 3, [(0, 1, "PER", 0.5, True)])._.calib.sample(1)[0].doc()
    assert [token.ent_iob_ for token in copy][1:] == ["O", ""]


@pytest.mark.parametrize("layer", ["spans:sc", 'spans:sc {"A": "X", "B": "Y"}'])
def test_spans_of_a_group_are_drawn_each_by_itself(layer):
    doc = Doc(NLP.vocab, words=["a", "b", "c"])
    doc.spans["sc"] = [Span(doc, 0, 2, "A"), Span(doc, 1, 3, "B"), Span(doc, 2, 3, "C")]
    write(doc, layer, [{}] * 3, [(0, 2, "A", 0.9, True), (1, 3, "B", 0.8, True)])
    draws = doc._.calib.sample(N, seed=0)
    agree(draws.in_draw.mean(axis=0), [0.9, 0.8])
    agree(draws.in_draw.all(axis=1).mean(), 0.72)
    both = draws[int(draws.in_draw.all(axis=1).argmax())].doc()
    neither = draws[int((~draws.in_draw).all(axis=1).argmax())].doc()
    assert [span.label_ for span in both.spans["sc"]] == ["A", "B", "C"]
    assert [span.label_ for span in neither.spans["sc"]] == ["C"]
    assert len(doc.spans["sc"]) == 3


def test_categories_that_exclude_each_other():
    doc = Doc(NLP.vocab, words=["a", "film"])
    doc.cats = {"neg": 0.2, "pos": 0.7, "none": 0.1, "sport": 0.3}
    write(doc, CatsAnnotation(("neg", "pos", "none")).name, [{"neg": 0.3, "pos": 0.6}])
    draws = doc._.calib.sample(N, seed=0)
    agree(draws.in_draw.mean(axis=0), [0.3, 0.6])
    assert draws.in_draw.sum(axis=1).max() == 1
    found = Counter(tuple(copy.cats.items()) for copy in map(lambda draw: draw.doc(), draws[:100]))
    others = {"none": 0.0, "sport": 0.3}
    kinds = [{"neg": neg, "pos": pos, **others} for neg, pos in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))]
    assert found.keys() == {tuple(kind.items()) for kind in kinds}


def test_categories_that_do_not():
    doc = Doc(NLP.vocab, words=["a", "film"])
    doc.cats = {"film": 0.9, "music": 0.8}
    layer = MappedAnnotation(CatsAnnotation(("film", "music"), overlapping=True), {"film": "film"}).name
    draws = write(doc, layer, [{"film": 0.9, "music": 0.7}])._.calib.sample(N, seed=0)
    agree(draws.in_draw.mean(axis=0), [0.9, 0.7])
    agree(draws.in_draw.all(axis=1).mean(), 0.63)
    assert draws[0].doc().cats == dict(zip(("film", "music"), draws.in_draw[0].astype(float), strict=True))


def test_draws_of_several_annotations_meet_on_one_doc():
    tags, ents = tagged()._.calib.sample(3), tagged()
    ents.set_ents([Span(ents, 0, 1, "PER")])
    write(ents, "ner", [{}] * 3, [(0, 1, "PER", 1.0, True)])
    del ents.user_data[next(iter(ents.user_data))]  # the block of the tags
    copy = ents._.calib.sample(3)[1].doc(onto=tags[1].doc())
    assert [ent.label_ for ent in copy.ents] == ["PER"]
    assert copy[1].tag_ == tags[1].doc()[1].tag_
    assert repr(tags) == "<LabelDraws: 3 of 'they fish now'>"
