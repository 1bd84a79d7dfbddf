"""Values stay with their span through every operation on Docs: right or None, never another span's."""

import contextlib
import copy
import itertools
import pickle
import random

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_calib.annotations import get_annotation
from spacy_calib.calibration.cutoffs import Cutoffs
from spacy_calib.calibration.grouping.fixed import make_shared_grouping
from spacy_calib.calibration.recalibrators import Identity
from spacy_calib.doc.store import find_spans
from spacy_calib.pairs.scores import SparseScores
from spacy_calib.pipe.component import Calibrator
from spacy_calib.sources.source import Source
from spacy_calib.types import Marginals, Spans

N_CHAINS = 220
LABELS = ("A", "B")
# Words of one length and few of them: what is left of one Doc often comes to lie on the like of it in another.
WORDS = ("aa", "bb")
# Of the label A: about the middle of what the fit gives.
CUTOFF = {"ner": 0.6, "spans:sc": 0.85}


class Drawn(Source):
    """A source that gives each span on the Doc a probability that no other span ever gets; the word after one is a candidate."""

    singleton_labels = ("O",)

    def __init__(self, layer: str):
        self.of = get_annotation(layer)
        self.numbers = (k * 61_803 % 100_003 / 100_003 for k in itertools.count(1))

    def annotation(self, pipe):
        return self.of

    def labels(self, pipe):
        return ("O", *LABELS)

    def span_labels(self, pipe):
        return LABELS

    def missing(self, pipe, docs):
        return [""] * len(docs)

    def raw_span_scores(self, spans):
        return spans.scores

    def read(self, pipe, docs):
        given, offset = [], 0
        for doc in docs:
            spans = [span for span in self.of.spans_on(doc) if span.label_ in LABELS]
            chosen = {(s.start + offset, s.end + offset, LABELS.index(s.label_)) for s in spans}
            held = {(end, end + 1, 0) for _, end, _ in chosen if end < offset + len(doc)} - chosen
            given += [(*key, True) for key in sorted(chosen)] + [(*key, False) for key in sorted(held)]
            offset += len(doc)
        table = np.array(given, dtype=np.intp).reshape(-1, 4)
        n_tokens = int((table[:, 1] - table[:, 0]).sum())
        own = np.array([next(self.numbers) for _ in given], dtype=np.float64)
        rows = np.arange(offset)
        marginals = Marginals(rows, np.zeros(offset, dtype=np.intp), np.ones(offset), offset)
        spans = Spans(table[:, 0], table[:, 1], table[:, 2], np.full(n_tokens, 0.5), own, table[:, 3] == 1)
        return SparseScores(marginals, spans)


class WithoutSpans(Drawn):
    """The same of an annotation of tokens."""

    def span_labels(self, pipe):
        return ()

    def read(self, pipe, docs):
        return SparseScores(super().read(pipe, docs).marginals_above(0.0))


def other_pipe(nlp: Language, layer: str) -> Calibrator:
    """A pipe under the default prefix that passes raw scores through."""
    source = (Drawn if layer == "spans:sc" else WithoutSpans)(layer)
    pipe = Calibrator(nlp, "calib", source=source, grouping=make_shared_grouping(), recalibrator=Identity())
    pipe.warn = lambda code, **values: None  # that it is not fitted
    return pipe


def draw_examples(nlp: Language, layer: str) -> list[Example]:
    rng = random.Random(0)
    examples = []
    for _ in range(20):
        doc = draw_doc(rng, nlp.vocab, layer)
        reference = doc.copy()
        put_spans(reference, layer, [span for span in spans_of(reference, layer) if rng.random() < 0.7])
        examples.append(Example(doc, reference))
    return examples


def make_calib(nlp: Language, layer: str, attr: str = "calib") -> Calibrator:
    """A fitted pipe with cut-offs."""
    maps = {"grouping": make_shared_grouping(), "recalibrator": Identity()}
    calib = Calibrator(nlp, attr, attr=attr, source=Drawn(layer), token_scores=True, **maps)
    calib.fit(draw_examples(nlp, layer))
    assert calib.spans.chosen.fallback_ == ""
    calib.spans.cutoffs = Cutoffs(0.9, 0.9, "label", {"A": CUTOFF[layer], "B": None})
    return calib


def spans_of(doc, layer) -> list[Span]:
    return list(get_annotation(layer).spans_on(doc))


def put_spans(doc, layer, spans) -> None:
    if layer == "ner":
        doc.set_ents(spans, default="outside")
    else:
        doc.spans["sc"] = spans


def draw_doc(rng, vocab, layer) -> Doc:
    n = rng.randint(1, 7)
    doc = Doc(vocab, words=[rng.choice(WORDS) for _ in range(n)], spaces=[rng.random() < 0.7 for _ in range(n)])
    spans, at = [], 0
    while at < n:
        end = min(n, at + rng.randint(1, 3))
        if rng.random() < 0.7:
            spans.append(Span(doc, at, end, rng.choice(LABELS)))
        at = end if layer == "ner" else at + rng.randint(0, 2)
        if len(spans) > 6:
            break
    put_spans(doc, layer, list({(s.start, s.end, s.label): s for s in spans}.values()))
    return doc


class Bench:
    """A pipe, and what each span was given under the identity that travels in its knowledge base id."""

    def __init__(self, layer: str, attr: str = "calib"):
        self.layer, self.attr = layer, attr
        self.nlp = spacy.blank("xx")
        self.vocab = self.nlp.vocab
        self.calib = make_calib(self.nlp, layer, attr)
        self.truth: dict[str, tuple] = {}

    def scored(self, rng) -> Doc:
        doc = draw_doc(rng, self.vocab, self.layer)
        named = []
        for span in spans_of(doc, self.layer):
            identity = f"span{len(self.truth) + len(named)}"
            named.append(Span(doc, span.start, span.end, span.label_, kb_id=identity))
        put_spans(doc, self.layer, named)
        doc = self.calib(doc)
        if self.attr != "calib":  # what `calib` writes of tags stands in no entity's way
            doc = other_pipe(self.nlp, "tag")(doc)
        for span in spans_of(doc, self.layer):
            values = (span._.calib_score, span._.calib_raw, span._.calib_accept)
            assert None not in values
            self.truth[span.kb_id_] = (span.text, span.label_, values)
        return doc

    def unscored(self, rng) -> Doc:
        return draw_doc(rng, self.vocab, self.layer)

    def check(self, doc, why="") -> tuple[int, int]:
        """No span shows what is not its own. RETURNS (tuple): How many show a value, and how many unchanged ones have lost theirs."""
        shown = lost = 0
        view = doc._.get(self.attr)
        in_view = {} if view is None else {(e.start, e.end, e.label): e for e in view.ents}
        for span in spans_of(doc, self.layer):
            values = (span._.calib_score, span._.calib_raw, span._.calib_accept)
            entry = in_view.get((span.start, span.end, span.label_))
            text, label, expected = self.truth.get(span.kb_id_, ("", "", None))
            own = (span.text, span.label_) == (text, label)
            if values == (None, None, None):
                lost += own
                continue
            assert own, (why, span.text, span.label_, span.kb_id_, values)
            assert values == expected, (why, span.text, values, expected)
            shown += 1
            if entry is not None:
                assert (entry.score, entry.raw, entry.accept) == expected, why
        on_doc = {(s.start, s.end, s.label_) for s in spans_of(doc, self.layer)}
        assert set(in_view) <= on_doc, why
        for entry in in_view.values():
            value = Span(doc, entry.start, entry.end, entry.label)._.calib_score
            assert value in (None, entry.score), why
        return shown, lost


@pytest.fixture(scope="module", params=["ner", "spans:sc"])
def bench(request):
    return Bench(request.param)


# Operations: each takes (bench, rng, doc) and gives the Doc that there is afterwards.

COPIES = {
    "bytes": lambda doc: Doc(doc.vocab).from_bytes(doc.to_bytes()),
    "docbin": lambda doc: next(DocBin().from_bytes(DocBin(store_user_data=True, docs=[doc]).to_bytes()).get_docs(doc.vocab)),
    "copy.copy": copy.copy,
    "doc.copy": Doc.copy,
    "pickle": lambda doc: pickle.loads(pickle.dumps(doc)),
}


def cut_out(bench, doc, start, end):
    cut = doc[start:end].as_doc(copy_user_data=True)
    if bench.layer != "ner":  # spaCy leaves span groups behind
        inside = [s for s in spans_of(doc, bench.layer) if start <= s.start and s.end <= end]
        cut.spans["sc"] = [Span(cut, s.start - start, s.end - start, s.label_, kb_id=s.kb_id_) for s in inside]
    return cut


def as_doc(bench, rng, doc):
    start = rng.randrange(len(doc))
    return cut_out(bench, doc, start, rng.randint(start + 1, len(doc)))


def join(docs, rng):
    """As one, in the vocabulary of the first."""
    docs = [Doc(docs[0].vocab).from_bytes(doc.to_bytes()) for doc in docs]
    return Doc.from_docs(docs, ensure_whitespace=rng.random() < 0.5, exclude=["tensor"])


def with_scored(bench, rng, doc):
    other = bench.scored(rng)
    return join([other, doc] if rng.random() < 0.5 else [doc, other], rng)


def exchanged(bench, rng, doc):
    at = rng.randint(0, len(doc))
    parts = [cut_out(bench, doc, *part) for part in ((at, len(doc)), (0, at)) if part[0] < part[1]]
    return Doc.from_docs(parts, exclude=["tensor"])


@contextlib.contextmanager
def retokenize(bench, doc):
    """spaCy's retokenizer does not move span groups: they are made anew by their characters, as far as these are still whole tokens."""
    kept = [(s.start_char, s.end_char, s.label_, s.kb_id_) for s in spans_of(doc, bench.layer)]
    with doc.retokenize() as retokenizer:
        yield retokenizer
    if bench.layer != "ner":
        anew = [doc.char_span(start, end, label=label, kb_id=kb_id) for start, end, label, kb_id in kept]
        doc.spans["sc"] = [span for span in anew if span is not None]


def merge(bench, doc, start, end, attrs=None):
    with retokenize(bench, doc) as retokenizer:
        retokenizer.merge(doc[start:end], attrs=attrs or {})
    return doc


def merge_words(bench, rng, doc):
    start = rng.randrange(len(doc))
    return merge(bench, doc, start, min(len(doc), start + 2))


def merge_entity(bench, rng, doc):
    spans = spans_of(doc, bench.layer)
    if not spans:
        return doc
    span = rng.choice(spans)
    attrs = {"ENT_TYPE": span.label_, "ENT_KB_ID": span.kb_id_} if bench.layer == "ner" else {}
    return merge(bench, doc, span.start, span.end, attrs)


def split(bench, rng, doc):
    token = doc[rng.randrange(len(doc))]
    if token.text in WORDS:
        with retokenize(bench, doc) as retokenizer:
            retokenizer.split(token, [token.text[:1], token.text[1:]], heads=[(token, 0), (token, 1)])
    return doc


def change(bench, doc, i, end, label):
    """Another end or label for one span, which keeps its identity; not those of another span that the pipe has found."""
    spans = spans_of(doc, bench.layer)
    changed = Span(doc, spans[i].start, end, label, kb_id=spans[i].kb_id_)
    own = (changed.text, label) == bench.truth.get(changed.kb_id_, ("", ""))[:2]
    if own or changed._.calib_score is None:
        spans[i] = changed
        put_spans(doc, bench.layer, spans)
    return doc


def relabel(bench, rng, doc):
    spans = spans_of(doc, bench.layer)
    if not spans:
        return doc
    i = rng.randrange(len(spans))
    return change(bench, doc, i, spans[i].end, {"A": "B", "B": "A"}.get(spans[i].label_, "A"))


def move(bench, rng, doc):
    spans = spans_of(doc, bench.layer)
    long = [i for i, span in enumerate(spans) if len(span) > 1]
    if not long:
        return doc
    i = rng.choice(long)
    return change(bench, doc, i, spans[i].end - 1, spans[i].label_)


CHANGES = (as_doc, with_scored, exchanged, merge_words, merge_entity, split, relabel, move)
OPERATIONS = {
    **{name: lambda bench, rng, doc, copy_doc=copy_doc: copy_doc(doc) for name, copy_doc in COPIES.items()},
    **{change.__name__: change for change in CHANGES},
}


def run_chains(bench, n_chains, seed) -> tuple[int, int, int]:
    """RETURNS (tuple): Values that were checked, values lost, chains that changed the number of tokens."""
    shown = lost = changed = 0
    for number in range(n_chains):
        rng = random.Random(f"{seed} {number}")
        doc = bench.scored(rng)
        n = len(doc)
        done = []
        for _ in range(rng.randint(1, 6)):
            done.append(rng.choice(list(OPERATIONS)))
            doc = OPERATIONS[done[-1]](bench, rng, doc)
            counts = bench.check(doc, f"chain {number}: {done}")
            shown, lost = shown + counts[0], lost + counts[1]
        changed += len(doc) != n
    return shown, lost, changed


@pytest.mark.filterwarnings("ignore:.*W10[12].*:UserWarning")
def test_random_chains_of_doc_operations(bench):
    shown, lost, changed = run_chains(bench, N_CHAINS, 1)
    assert shown > 1000
    assert changed > N_CHAINS / 3
    assert lost < shown / 2


@pytest.mark.filterwarnings("ignore:.*W10[12].*:UserWarning")
def test_random_chains_of_a_doc_with_tags_and_entities():
    """What `Span._.calib_score` reads from the pipe of entities is right or None as well."""
    shown, lost, _ = run_chains(Bench("ner", "calib_ent"), 60, 2)
    assert shown > 200
    assert lost < shown / 2


def test_a_doc_that_was_never_scored_shows_nothing(bench):
    """Though the rest of a Doc that was cut comes to lie on it; if it completes the text that was scored, letter by letter, the scores
    are those of this text.
    """
    n_same = 0
    for number in range(400):
        rng = random.Random(number)
        doc = bench.scored(rng)
        cut = cut_out(bench, doc, 0, rng.randint(1, len(doc)))
        joined = Doc.from_docs([cut, bench.unscored(rng)], exclude=["tensor"])
        if len(cut) < len(doc) and joined.text.startswith(doc.text.strip()):
            n_same += 1
            before = {(s.start_char, s.end_char, s.label_): s._.calib_score for s in spans_of(doc, bench.layer)}
            for span in spans_of(joined, bench.layer):
                assert span._.calib_score == before.get((span.start_char, span.end_char, span.label_))
        else:
            bench.check(joined, f"number {number}")
    assert 0 < n_same < 100


def first_doc(bench, seed=3):
    """A scored Doc with at least two spans, one of them of several tokens, and a candidate."""
    rng = random.Random(seed)
    while True:
        doc = bench.scored(rng)
        spans = spans_of(doc, bench.layer)
        if len(spans) > 1 and max(map(len, spans)) > 1 and doc._.calib.candidates:
            return doc


@pytest.mark.parametrize("way", COPIES)
def test_copies_lose_nothing(bench, way):
    doc = first_doc(bench)
    n = len(spans_of(doc, bench.layer))
    ents, candidates = doc._.calib.ents, doc._.calib.candidates
    other = COPIES[way](doc)
    assert other is not doc
    assert bench.check(other) == (n, 0)
    assert (other._.calib.ents, other._.calib.candidates) == (ents, candidates)
    assert len(ents) == n
    assert candidates


def test_merging_an_entity_into_one_token_keeps_its_score(bench):
    doc = first_doc(bench)
    span = max(spans_of(doc, bench.layer), key=len)
    expected, text, label, start = bench.truth[span.kb_id_][2], span.text, span.label_, span.start
    assert len(span) > 1
    doc = merge(bench, doc, span.start, span.end)
    merged = [s for s in spans_of(doc, bench.layer) if (s.start, s.end, s.label_) == (start, start + 1, label)]
    assert [s.text for s in merged] == [text]
    assert (merged[0]._.calib_score, merged[0]._.calib_raw, merged[0]._.calib_accept) == expected
    assert (start, start + 1, label, expected[0]) in {(e.start, e.end, e.label, e.score) for e in doc._.calib.ents}


def test_spans_over_other_words_are_not_in_the_view(bench):
    """The user data put on a Doc with other words of the same width: neither its spans nor its candidates are those that were scored."""
    doc = first_doc(bench)
    user_data = dict(doc.user_data)
    same, other = (
        Doc(bench.vocab, words=words, spaces=[bool(token.whitespace_) for token in doc], user_data=user_data)
        for words in ([token.text for token in doc], [{"aa": "cc", "bb": "dd"}[token.text] for token in doc])
    )
    for one in (same, other):
        put_spans(one, bench.layer, [Span(one, s.start, s.end, s.label_, kb_id=s.kb_id_) for s in spans_of(doc, bench.layer)])
    assert (same._.calib.ents, same._.calib.candidates) == (doc._.calib.ents, doc._.calib.candidates)
    assert same._.calib.candidates
    assert other._.calib is None or (other._.calib.ents, other._.calib.candidates) == ((), ())
    assert [span._.calib_score for span in spans_of(other, bench.layer)] == [None] * len(spans_of(doc, bench.layer))


def test_a_changed_label_has_no_score(bench):
    doc = first_doc(bench)
    span = spans_of(doc, bench.layer)[0]
    place = (span.start, span.end)
    for label, expected in (("NEW", (None, None, None)), (span.label_, bench.truth[span.kb_id_][2])):
        changed = [Span(doc, *place, label, kb_id=span.kb_id_), *spans_of(doc, bench.layer)[1:]]
        put_spans(doc, bench.layer, changed)
        first = spans_of(doc, bench.layer)[0]
        assert (first._.calib_score, first._.calib_raw, first._.calib_accept) == expected
        assert ((*place, label) in {(e.start, e.end, e.label) for e in doc._.calib.ents}) == (expected[0] is not None)


def test_accepted_are_those_that_reach_the_cutoff_of_their_label(bench):
    seen = set()
    for seed in range(60):
        for entry in first_doc(bench, seed)._.calib.ents:
            assert entry.accept == (entry.label == "A" and entry.score >= CUTOFF[bench.layer])
            seen.add((entry.label, entry.accept))
    assert seen == {("A", True), ("A", False), ("B", False)}


def test_without_cutoffs_nothing_is_said(bench):
    doc = first_doc(bench)
    cutoffs, bench.calib.spans.cutoffs = bench.calib.spans.cutoffs, None
    try:
        doc = bench.calib(doc)
    finally:
        bench.calib.spans.cutoffs = cutoffs
    spans = spans_of(doc, bench.layer)
    assert {span._.calib_accept for span in spans} == {None}
    assert {entry.accept for entry in doc._.calib.ents} == {None}
    assert None not in {span._.calib_score for span in spans}


def test_candidates_are_no_spans_of_the_doc(bench):
    view = first_doc(bench)._.calib
    assert [entry.score for entry in view.candidates] == sorted((entry.score for entry in view.candidates), reverse=True)
    assert {entry.accept for entry in view.candidates} == {None}
    doc = Doc(bench.vocab, words=["aa", "bb", "aa"])
    put_spans(doc, bench.layer, [Span(doc, 0, 1, "B")])
    doc = bench.calib(doc)
    (candidate,) = doc._.calib.candidates
    assert (candidate.start, candidate.end, candidate.label) == (1, 2, "A")
    assert 0 < candidate.score < 1
    assert Span(doc, 1, 2, "A")._.calib_score is None


def test_other_spans_of_the_doc_have_no_score(bench):
    doc = first_doc(bench)
    span = max(spans_of(doc, bench.layer), key=len)
    scored = {(s.start, s.end, s.label_) for s in spans_of(doc, bench.layer)}
    for other in (doc[span.start : span.end], doc[0:0], Span(doc, span.start, span.end, "NEW")):
        assert (other._.calib_score, other._.calib_raw, other._.calib_accept) == (None, None, None)
    for start, end in itertools.combinations(range(len(doc) + 1), 2):
        for label in LABELS:
            assert (Span(doc, start, end, label)._.calib_score is None) == ((start, end, label) not in scored)


def test_a_group_that_tokens_were_split_under_shows_nothing_of_other_words(bench):
    """spaCy leaves such a span where it was."""
    doc = Doc(bench.vocab, words=["qlike", "Anna"])
    put_spans(doc, bench.layer, [Span(doc, 1, 2, "A")])
    doc = bench.calib(doc)
    assert all(span._.calib_score is not None for span in spans_of(doc, bench.layer))
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[0], ["q", "like"], heads=[(doc[0], 0), (doc[0], 1)])
    shown = [(span.text, span._.calib_score) for span in spans_of(doc, bench.layer)]
    assert [text for text, score in shown if score is not None] in ([], ["Anna"])


def test_running_again_takes_the_place_of_the_old_values(bench):
    doc = first_doc(bench)
    before = [span._.calib_raw for span in spans_of(doc, bench.layer)]
    doc = bench.calib(doc)
    after = [span._.calib_raw for span in spans_of(doc, bench.layer)]
    assert not set(before) & set(after)
    assert None not in after


def test_two_docs_with_the_same_words_keep_their_own(bench):
    words = ["aa", "bb"]
    docs = []
    for _ in range(2):
        doc = Doc(bench.vocab, words=words)
        put_spans(doc, bench.layer, [Span(doc, 0, 1, "A"), Span(doc, 1, 2, "B")])
        docs.append(bench.calib(doc))
    scores = [[span._.calib_raw for span in spans_of(doc, bench.layer)] for doc in docs]
    assert len({*scores[0], *scores[1]}) == 4
    joined = Doc.from_docs(docs)
    assert [span._.calib_raw for span in spans_of(joined, bench.layer)] == scores[0] + scores[1]


def test_spans_of_another_layer_under_the_same_prefix_are_not_found():
    nlp, docs = spacy.blank("xx"), []
    for layer in ("ner", "spans:sc"):
        doc = Doc(nlp.vocab, words=["aa", "bb"])
        put_spans(doc, layer, [Span(doc, 0, 1, "A")])
        docs.append(make_calib(nlp, layer)(doc))
    joined = Doc.from_docs(docs)
    for layer, expected in (("ner", (0, 2, "A")), ("spans:sc", (6, 8, "A"))):
        assert [key for key, values, _ in find_spans(joined, "calib", layer) if values.on_doc] == [expected]


def two_pipes_on(nlp: Language, layer: str) -> Doc:
    """A Doc with the entity (0, 2, "A") that is scored under calib_ent, and scores of another layer under calib."""
    doc = Doc(nlp.vocab, words=["aa", "bb", "aa"], tags=["A", "B", "A"])
    doc.set_ents([Span(doc, 0, 2, "A")], default="outside")
    doc.spans["sc"] = [Span(doc, 2, 3, "B")]
    entities = make_calib(nlp, "ner", "calib_ent")
    entities.token_scores = False
    return other_pipe(nlp, layer)(entities(doc))


@pytest.mark.parametrize(("layer", "is_read"), [("tag", True), ("spans:sc", False)])
def test_the_default_prefix_reads_the_pipe_of_entities_where_calib_scores_no_spans(layer, is_read):
    nlp = spacy.blank("xx")
    doc = two_pipes_on(nlp, layer)
    (entity,) = doc.ents
    score = entity._.calib_ent_score
    assert 0 < score < 1
    assert entity._.calib_score == (score if is_read else None)
    assert entity._.calib_raw == (entity._.calib_ent_raw if is_read else None)
    # Whatever becomes of the Doc: the same, and never another span's.
    for copied in (doc.copy(), Doc(nlp.vocab).from_bytes(doc.to_bytes()), Doc.from_docs([doc, two_pipes_on(nlp, layer)])):
        assert copied.ents[0]._.calib_score == (score if is_read else None)
    assert doc[1:3]._.calib_score is None
    assert (doc.spans["sc"][0]._.calib_score is None) is is_read
    doc.set_ents([Span(doc, 0, 2, "B")])
    assert [span._.calib_score for span in doc.ents] == [None]


def test_tokens_of_a_pipe_of_entities_have_no_score():
    doc = two_pipes_on(spacy.blank("xx"), "tag")
    assert len(doc._.calib_ent) > 0
    assert {token._.get(f"calib_ent_{name}") for token in doc for name in ("score", "raw", "scores")} == {None}
