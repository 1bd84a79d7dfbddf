"""What queries answer of one Doc, with scores made by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_calib import CalibError
from spacy_calib.plugins.coref.inference.antecedents import Antecedents, Candidates
from spacy_calib.plugins.coref.inference.pairs import pair_probabilities
from spacy_calib.plugins.coref.mentions import Mentions
from spacy_calib.plugins.coref.view import CorefResult, write_result
from spacy_calib.plugins.counts.queries.base import LabelScores
from spacy_calib.plugins.counts.queries.patterns import QueryAbilities, make_query, split_query

VOCAB = spacy.blank("en").vocab


@dataclass(frozen=True)
class Fixed(LabelScores):
    """Scores by label: of each token; raw ones are the halves."""

    held: dict[str, list[float]] = field(default_factory=dict)

    def sum_scores(self, doc, test, view_of=None):
        kept = [np.array(row) for label, row in self.held.items() if test(label)]
        total = np.sum(kept, axis=0) if kept else np.zeros(len(doc))
        return total / 2, total


TAGS = Fixed("calib", "tag", ["NNP", "MD", "VB"], {
    "NNP": [0.9, 0.3, 0.0, 0.6], "MD": [0.0, 0.7, 0.0, 0.0], "VB": [0.1, 0.0, 1.0, 0.4],
})  # fmt: skip
TYPES = Fixed("ents", "ner", ["O", "PER"], {"O": [0.1, 0.6, 1.0, 0.5], "PER": [0.9, 0.4, 0.0, 0.5]})


@pytest.fixture
def doc():
    doc = Doc(VOCAB, words=["May", "may", "leave", "May"], tags=["NNP", "MD", "VB", "NNP"])
    doc.set_ents([Span(doc, 0, 1, "PER")], default="outside")
    return doc


def ask(text, unit=None, label_scores=(TAGS, TYPES), has_coref=True, has_parser=True):
    query = text if isinstance(text, str) else json.dumps(text)
    return make_query(query, QueryAbilities(label_scores, has_coref, has_parser, VOCAB), unit)


def test_a_tag(doc):
    answer = ask("NNP").answer(doc)
    assert answer.calibrated.tolist() == [0.9, 0.3, 0.6]
    assert answer.raw.tolist() == [0.45, 0.15, 0.3]
    assert (answer.n_found, ask("NNP", "document").answer(doc).n_found) == (2, 1)


def test_entities_begin_where_their_chance_rises(doc):
    answer = ask("PER").answer(doc)
    assert (answer.calibrated.tolist(), answer.n_found) == ([0.9, 0.5], 1)  # the 0.4 may be the rest of the first one
    tokens = ask("PER", "token").answer(doc)
    assert tokens.calibrated.tolist() == [0.9, 0.4, 0.5]
    doc.set_ents([Span(doc, 0, 1, "PER"), Span(doc, 1, 2, "PER")], default="outside")
    assert ask("PER").answer(doc).calibrated.tolist() == [0.9, 0.4, 0.5]
    assert ask("PER").count_gold(doc) == 2


def test_entities_in_prefixed_labels(doc):
    scores = {"B-PER": [0.2, 0, 0, 0], "L-PER": [0, 0.2, 0, 0], "U-PER": [0.5, 0, 0, 0.1]}
    biluo = Fixed("ents", "biluo", ["O", *scores], scores)
    assert ask("PER", label_scores=[biluo]).answer(doc).calibrated.tolist() == pytest.approx([0.7, 0.1])
    assert ask("PER", "token", [biluo]).answer(doc).calibrated.tolist() == pytest.approx([0.7, 0.2, 0.1])


def test_patterns_multiply_what_is_uncertain(doc):
    answer = ask([{"LOWER": "may", "TAG": "NNP"}]).answer(doc)
    assert (answer.calibrated.tolist(), answer.n_found) == ([0.9, 0.3, 0.6], 2)
    answer = ask([{"TAG": "NNP", "ENT_TYPE": "PER"}, {"TAG": {"IN": ["MD", "VB"]}}]).answer(doc)
    np.testing.assert_allclose(answer.calibrated, [0.81 * 0.7, 0.12 * 1.0], rtol=1e-12)
    assert answer.n_found == 1
    answer = ask([{"TAG": {"REGEX": "^V"}, "ENT_TYPE": ""}]).answer(doc)
    np.testing.assert_allclose(answer.calibrated, [0.01, 1.0, 0.2])
    assert ask([{"TAG": {"NOT_IN": ["MD", "VB"]}}], "document").count_gold(doc) == 1
    assert len(ask([{"TAG": "NNP"}] * 9).answer(doc).raw) == 0
    # Texts are sure.
    answer = ask([{"LOWER": "may"}, {"LOWER": "leave"}]).answer(doc)
    assert (answer.calibrated.tolist(), answer.n_found) == ([1.0], 1)
    assert ask([{"LOWER": "nobody"}]).answer(doc).n_found == 0


def test_labels_that_are_asked_for():
    assert ask("NNP").labels == [("calib", "NNP")]
    assert ask([{"TAG": {"IN": ["MD", "VB"]}}, {"LOWER": "x"}]).labels == [("calib", "MD"), ("calib", "VB")]
    assert ask([{"LOWER": "x"}]).labels == []


@pytest.mark.parametrize(("text", "code", "part"), [
    ("", "C392", "it is empty"), ("[{", "C392", "no JSON"), ("[]", "C392", "a list with an object for each token"),
    ('[{"TAG": "NNP", "OP": "+"}]', "C392", "no fixed length"),
    ('[{"TAG": {">": 3}}]', "C392", "IN, NOT_IN, REGEX"), ('[{"TAG": {"REGEX": "("}}]', "C392", "unterminated"),
    ('[{"NOSUCH": "x"}]', "C392", "NOSUCH"), ('{"names": ["x"]}', "C392", "needs a verb"), ('{"verb": 3}', "C392", "words, or lists"),
    ('{"verb": "a", "who": "x"}', "C392", "but not who"), ("ANIMAL", "C393", "they know: MD, NNP, O, PER, VB"),
    ('[{"TAG": "XX"}]', "C393", "'XX'"), ('[{"POS": "NOUN"}]', "C394", "needs scores of POS"),
])  # fmt: skip
def test_queries_that_cannot_be_asked(text, code, part):
    with pytest.raises(CalibError, match=code) as error:
        ask(text)
    assert part in error.value.message


def test_what_a_pipeline_cannot_do():
    event = {"verb": "attack"}
    for options, part in (
        ({"has_coref": False}, "coreference; add calib_coref"),
        ({"has_parser": False}, "dependencies; add a"),
    ):
        with pytest.raises(CalibError, match="C395") as error:
            ask(event, **options)
        assert part in error.value.message
    for text, unit in ((event, "token"), ("NNP", "entity"), ([{"LOWER": "x"}], "entity")):
        with pytest.raises(CalibError, match="C398"):
            ask(text, unit)


def test_kinds():
    assert split_query(" PERSON ") == ("label", "PERSON")
    assert split_query("lemma=attack") == ("label", "lemma=attack")
    assert split_query('[{"lemma": "attack"}]') == ("pattern", [{"LEMMA": "attack"}])


@pytest.fixture
def story():
    """ "Iraqi troops came . They attacked Kuwait ." The mentions: Iraqi troops, They (their antecedent with chance 0.7), Kuwait."""
    words = ["Iraqi", "troops", "came", ".", "They", "attacked", "Kuwait", "."]
    doc = Doc(VOCAB, words=words, heads=[1, 2, 2, 2, 5, 5, 5, 5], deps=["amod", "nsubj", "ROOT", "punct", "nsubj", "ROOT", "dobj", "punct"],
              lemmas=["iraqi", "troop", "come", ".", "they", "attack", "Kuwait", "."])  # fmt: skip
    mentions = Mentions.on(doc, [(0, 2), (4, 5), (6, 7)])
    antecedents = Antecedents(Candidates(np.array([0, 0, 1, 1]), np.array([0])), np.array([0.7]))
    pairs = pair_probabilities(antecedents, 0.01)
    write_result(doc, CorefResult(mentions, antecedents, pairs, None, np.zeros(0), np.array([0, 0, 2])))
    return doc


def test_an_entity_does_something(story):
    query = ask({"verb": "attack", "names": ["Iraq", "Iraqi"]})
    answer = query.answer(story)
    assert (query.unit, answer.n_found, len(answer.sampled_counts)) == ("document", 1, 200)
    assert answer.sampled_counts.mean() == pytest.approx(0.7, abs=0.1)
    assert answer.calibrated.tolist() == [answer.sampled_counts.mean()]
    assert ask({"verb": "attack", "names": "kuwait"}).answer(story).n_found == 0
    assert ask({"verb": "come", "names": "iraqi"}).answer(story).calibrated.tolist() == [1.0]
    anybody = ask({"verb": ["attack", "come"]}, "entity").answer(story)
    assert anybody.n_found == 1  # one entity does both
    assert sorted(set(anybody.sampled_counts.tolist())) == [1, 2]
    assert anybody.sampled_counts.mean() == pytest.approx(2 - 0.7, abs=0.1)
    without = ask({"verb": "attack", "not": "iraqi"}).answer(story)
    assert without.sampled_counts.mean() == pytest.approx(0.3, abs=0.1)


def test_who_attacks_in_the_passive():
    doc = Doc(VOCAB, words=["it", "was", "attacked", "by", "forces", "of", "Iraq"], heads=[2, 2, 2, 2, 3, 4, 5],
              deps=["nsubjpass", "auxpass", "ROOT", "agent", "pobj", "prep", "pobj"], lemmas=["it", "be", "attack", "by", "force", "of", "Iraq"])  # fmt: skip
    mentions = Mentions.on(doc, [(0, 1), (4, 7)])
    none = Antecedents(Candidates(np.zeros(3, dtype=np.intp), np.zeros(0, dtype=np.intp)), np.zeros(0))
    write_result(doc, CorefResult(mentions, none, pair_probabilities(none, 0.01), None, np.zeros(0), np.array([0, 1])))
    assert ask({"verb": "attack", "names": "iraq"}).answer(doc).calibrated.tolist() == [1.0]
    assert ask({"verb": "attack"}, "entity").answer(doc).n_found == 1


def test_a_doc_without_coreference(doc):
    answer = ask({"verb": "attack"}).answer(doc)
    assert (answer.n_found, len(answer.calibrated), answer.sampled_counts.sum()) == (0, 0, 0)
