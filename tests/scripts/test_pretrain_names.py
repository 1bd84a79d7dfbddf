"""scripts/pretrain/entities.py: the bounds of what lists add, with made-up entities; and forms of sources."""

import numpy as np
import pytest
from pretrain.entities import CONTRADICTIONS, PERSON_GAIN, SLACK, SUPPORTS, TYPES, Judged, add_lists
from pretrain.sources import AS_IT_IS, Source, in_form
from quality.readers import Sentence

from spacy_calib.context.words import Words
from spacy_calib.plugins.pretrained.evidence import COLUMNS, EntityEvidence
from spacy_calib.plugins.pretrained.names import NameLists
from spacy_calib.types import Spans

LISTS = NameLists({"first_names": {"ann"}, "places": {"ghana"}, "organizations": {"acme"}, "ordinary_words": {"people"}})
WORDS = ("Ann", "Femi", "Ghana", "Acme", "People")
BASE = {"constant": 0.5, **{f"type*{kind}": 0.0 for kind in TYPES}}


def judged(right: dict[tuple[str, str], bool]) -> Judged:
    """Each word as each type, in a Doc of its own, forty times; right (dict): (word, type) -> whether it is right, else half of them are."""
    rows = [(word, kind, right.get((word, kind), i % 2 == 0)) for word in WORDS for kind in TYPES for i in range(40)]
    n, nothing = len(rows), np.zeros(len(rows))
    starts = np.arange(n)
    labels = np.array([TYPES.index(kind) for _, kind, _ in rows])
    spans = Spans(starts, starts + 1, labels, np.full(n, 0.5), nothing + 0.5, np.ones(n, dtype=bool))
    columns = {EntityEvidence.registered: np.zeros((n, len(COLUMNS)))}
    hashes, shapes = nothing.astype(np.uint64), nothing.astype(np.intp)
    words = Words(np.arange(n + 1), hashes, hashes, shapes, np.ones(n, dtype=bool), columns)
    hits = {"exact": np.array([int(hit) for _, _, hit in rows])}
    texts = [[word] for word, _, _ in rows]
    return Judged(spans, np.full(n, 0.5), starts, hits, words, TYPES, texts).with_lists(LISTS)


def test_what_the_data_contradict_is_not_learned():
    """Listed names are wrong, and names that contradict are right: all terms stay 0."""
    wrong = {("Ann", "PERSON"): False, ("Ghana", "GPE"): False, ("Acme", "ORG"): False}
    right = dict.fromkeys(
        (("Ghana", "PERSON"), ("Ghana", "ORG"), ("Acme", "PERSON"), ("People", "PERSON"), ("People", "ORG")), True
    )
    table = add_lists(BASE, [judged(wrong | right)], "exact")
    assert all(table[name] == pytest.approx(0, abs=1e-3) for name in (*SUPPORTS, *CONTRADICTIONS) if name[:5] != "place")
    assert all(table[name] >= 0 for name in SUPPORTS)
    assert all(table[name] <= 0 for name in CONTRADICTIONS)


def test_constants_move_little_and_that_of_persons_only_down():
    right = dict.fromkeys((("Ann", "PERSON"), ("Ghana", "GPE"), ("Ghana", "LOC"), ("Ghana", "FAC")), True)
    always = dict.fromkeys((word, kind) for word in WORDS for kind in TYPES)
    down = add_lists(BASE, [judged({**dict.fromkeys(always, False), **right})], "exact")
    assert [down[f"type*{kind}"] for kind in TYPES] == [-SLACK] * len(TYPES)
    assert down["first name alone"] == PERSON_GAIN["first name alone"]
    assert down["place"] > 1
    assert down["organization, but a place"] < -0.3
    up = add_lists(BASE, [judged(dict.fromkeys(always, True))], "exact")
    assert [up[f"type*{kind}"] for kind in TYPES] == [0.0, *[SLACK] * (len(TYPES) - 1)]


def test_a_source_in_another_form_has_the_same_gold():
    source = Source("x", "", "", "CC0", lambda: [[Sentence("d", ["Ann", "sang"], {"ents": ["B-PER", "O"]}, [True, False])]])
    for form, words in ((AS_IT_IS, ["Ann", "sang"]), ("lower", ["ann", "sang"]), ("capitals", ["ANN", "SANG"])):
        ((sentence,),) = in_form(source, form).read()
        assert (sentence.words, sentence.gold, sentence.spaces) == (words, {"ents": ["B-PER", "O"]}, [True, False])
