"""Entities look at the scores that the context gives their tokens."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_calib.calibration.grouping.fixed import make_shared_grouping
from spacy_calib.calibration.recalibrators import Identity
from spacy_calib.context.tokens import SpanContextModel, TokenContext
from spacy_calib.metrics import log_loss
from spacy_calib.pairs.scores import SparseScores
from spacy_calib.pipe.component import Calibrator
from spacy_calib.schema import InvalidState
from spacy_calib.sources.mapped import with_map
from spacy_calib.types import Marginals, Spans
from tests.doc.test_span_attributes import Drawn

NLP = spacy.blank("xx")
WORDS = [f"w{number}" for number in range(40)]
# How often a token that is called A is A: that is known of its word alone.
RIGHT = dict(zip(WORDS, np.tile([0.97, 0.3], 20), strict=True))


class AllAlike(Drawn):
    """Gives every token of an entity the same score."""

    def read(self, pipe, docs):
        offsets = np.cumsum([0, *map(len, docs)])
        ents = [(span.start + start, span.end + start) for doc, start in zip(docs, offsets, strict=False) for span in doc.ents]
        starts, ends = np.array(ents, dtype=np.intp).reshape(-1, 2).T
        inside = np.zeros(offsets[-1], dtype=bool)
        for start, end in ents:
            inside[start:end] = True
        scores = np.where(inside[:, None], [0.1, 0.8, 0.1], [0.9, 0.05, 0.05])
        rows, tags = (place.ravel() for place in np.indices(scores.shape))
        lengths, n = ends - starts, len(starts)
        spans = Spans(starts, ends, np.zeros(n, np.intp), np.full(lengths.sum(), 0.8), 0.8**lengths, np.ones(n, bool))
        return SparseScores(Marginals(rows, tags, scores.ravel(), len(scores)), spans)


def example(rng: np.random.Generator, gold: str = "A") -> tuple[Example, list[float]]:
    """A Doc of four entities of one to three words, with gold, and how likely each is right."""
    words, ents, right, chances = [], [], [], []
    for length in rng.integers(1, 4, 4).tolist():
        named = rng.choice(WORDS, length).tolist()
        words += ["of", *named]
        ents.append((len(words) - length, len(words)))
        of_words = np.array([RIGHT[word] for word in named])
        right += [False, *(rng.random(length) < of_words)]
        chances.append(float(of_words.prod()))
    doc = Doc(NLP.vocab, words=words)
    reference = Doc(NLP.vocab, words=words, ents=_iob(right, gold))
    doc.set_ents([Span(doc, start, end, "A") for start, end in ents], default="outside")
    return Example(doc, reference), chances


def _iob(right: list[bool], gold: str) -> list[str]:
    return [("I-" if before else "B-") + gold if own else "O" for before, own in zip([False, *right], right, strict=False)]


def fitted(*, context: bool = True, gold: str = "A", n: int = 150) -> Calibrator:
    source = with_map(AllAlike("ner"), {"A": gold} if gold != "A" else None)
    looks = TokenContext([]) if context else None
    calib = Calibrator(NLP, source=source, grouping=make_shared_grouping(), recalibrator=Identity(), context=looks)
    rng = np.random.default_rng(0)
    return calib.fit([example(rng, gold)[0] for _ in range(n)])


@pytest.fixture(scope="module")
def in_context() -> Calibrator:
    return fitted()


def new_docs(n: int) -> tuple[list[Doc], np.ndarray]:
    rng = np.random.default_rng(1)
    drawn = [example(rng) for _ in range(n)]
    return [eg.predicted for eg, _ in drawn], np.array([chance for _, chances in drawn for chance in chances])


def scores(docs) -> np.ndarray:
    return np.array([ent._.calib_score for doc in docs for ent in doc.ents])


@pytest.mark.parametrize("gold", ["A", "NAME"])
def test_the_product_of_its_tokens_scores_tells_whether_an_entity_is_right(gold):
    docs, chances = new_docs(100)
    rng = np.random.default_rng(2)
    hits = rng.random(len(chances)) < chances
    alone = scores(map(fitted(context=False, gold=gold), docs))
    found = scores(map(fitted(gold=gold), docs))
    assert log_loss(found, hits) < log_loss(alone, hits) - 0.15
    assert log_loss(found, hits) < log_loss(chances, hits) + 0.05
    assert np.abs(found - chances).mean() < 0.1


def test_what_an_entity_looks_at_is_told(in_context):
    about = in_context.fit_info.spans.context
    weights = {one["what"]: one["weight"] for one in about["weights"]}
    assert about["kept"]
    assert max(weights, key=lambda name: abs(weights[name])) == "the product of its tokens' scores"


def test_a_doc_alone_has_the_scores_that_it_has_among_a_hundred(in_context):
    docs, _ = new_docs(100)
    alone = [scores([in_context(doc)]).tolist() for doc in docs]
    assert [scores([doc]).tolist() for doc in in_context.pipe(docs, batch_size=100)] == alone
    assert [scores([doc]).tolist() for doc in in_context.pipe(docs[::-1], batch_size=7)] == alone[::-1]


def test_it_survives_saving(in_context):
    docs, _ = new_docs(10)
    before = scores(map(in_context, docs))
    again = Calibrator(NLP, source=AllAlike("ner"), grouping=make_shared_grouping(), recalibrator=Identity())
    again.from_bytes(in_context.to_bytes())
    assert np.array_equal(scores(map(again, docs)), before)
    assert again.spans.context.tags.tags.tolist() == in_context.spans.context.tags.tags.tolist()


@pytest.mark.parametrize(("name", "damaged"), [
    ("tags", lambda held: held["tags"] + 7),  # numbers that no label of spans has
    ("labels", lambda held: held["labels"][:0]),
    ("labels", lambda held: np.append(held["labels"], 0)),  # one more label of spans than have groups
])  # fmt: skip
def test_labels_of_tokens_that_go_with_no_label_of_spans_are_no_state(in_context, name, damaged):
    state = in_context.spans.context.state()
    assert SpanContextModel.read(state).state()["columns"] == state["columns"]
    with pytest.raises(InvalidState):
        SpanContextModel.read({**state, "tags": {**state["tags"], name: damaged(state["tags"])}})
