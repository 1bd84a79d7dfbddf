"""What lists add to the scores of entities: signs and constants of the cards, names in no list, newcomers' sentences, missing lists."""

import itertools
from typing import Any

import numpy as np
import pytest
import spacy
from pretrain.entities import CONTRADICTIONS, LISTS, SUPPORTS, current_lists, evidence_names
from spacy.lang.en.examples import sentences as english_examples

from spacy_calib.calibration.solvers import sigmoid
from spacy_calib.plugins.pretrained import names
from spacy_calib.plugins.pretrained.card import all_cards
from spacy_calib.plugins.pretrained.evidence import EntityMap
from spacy_calib.plugins.pretrained.names import LOCATIONS, ORGANIZATIONS, PERSONS

CARDS = [card for card in all_cards() if card.component == "ner"]
TYPES = (*PERSONS, *LOCATIONS, *ORGANIZATIONS)
PAIRS = [
    pytest.param(card.data["maps"][needs], card.data["maps"][needs.removesuffix(LISTS)], id=f"{card.name}: {needs}")
    for card in CARDS
    for needs in card.data["maps"]
    if needs.endswith(LISTS)
]
# Rounding of two coefficients.
EPS = 2e-4


@pytest.mark.parametrize(("table", "base"), PAIRS)
def test_signs_and_constants(table, base):
    """What supports adds, what contradicts subtracts, constants move by .2 at most and PERSON's only down; all else is the base map's."""
    assert set(table) - set(base) == {*SUPPORTS, *CONTRADICTIONS}
    assert all(table[name] >= 0 for name in SUPPORTS)
    assert all(table[name] <= 0 for name in CONTRADICTIONS)
    constants = {f"type*{kind}" for kind in TYPES}
    moves = {name: table[name] - base[name] for name in constants}
    assert all(abs(move) <= 0.2 + EPS for move in moves.values())
    assert moves["type*PERSON"] <= EPS
    rest = set(base) - constants
    assert {name: table[name] for name in rest} == {name: base[name] for name in rest}


@pytest.mark.parametrize(("table", "base"), PAIRS)
def test_no_person_without_a_contradiction_loses_more_than_a_twentieth(table, base):
    of_person = [name for name in SUPPORTS if "name" in name]
    assert len(of_person) == 4
    margins = np.linspace(-14, 14, 2801)
    for flags in itertools.product((0, 1), repeat=4):
        supports = sum(flag * table[name] for flag, name in zip(flags, of_person, strict=True))
        terms = table["type*PERSON"] - base["type*PERSON"] + supports
        assert (sigmoid(margins) - sigmoid(margins + terms)).max() <= 0.05


def test_the_cards_name_the_lists_of_the_package():
    assert [card.data["lists"] for card in CARDS] == [current_lists()] * 2
    for card in CARDS:
        assert set(evidence_names(TYPES)) == {needs.removesuffix(LISTS) for needs in card.data["maps"]}


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_names_of_ten_locales_and_three_shapes(card):
    """No row loses more than .05 to the map without lists; a list adds .10 at most, and carries 1 name of 20 over the cut-off at most."""
    rows = card.data["fairness"]
    assert len({(row["locale"], row["shape"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["found"] > 100
        assert min(row["score"], row["left_out"], row["unlisted"]) >= row["without_lists"] - 0.05
        assert row["most_gained"] <= 0.1 + EPS
    for shape in ("one word", "more words", "hyphen"):
        carried = [(row["found"], row["carried"]) for row in rows if row["shape"] == shape]
        n, share = np.array(carried).T
        assert n @ share / n.sum() <= 0.05, shape


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_each_form_of_text_is_below_raw(card):
    assert list(card.data["text_forms"]) == ["as it is", "lower", "capitals"]
    for form, rows in card.data["text_forms"].items():
        for row in rows:
            assert all(row["calibrated"][key] < row["raw"][key] for key in ("log_loss", "brier", "ece")), (form, row["source"])


def scored(nlp: Any, text: str) -> list[tuple[str, str, float]]:
    return [(ent.text, ent.label_, ent._.calib_ent_score) for ent in nlp(text).ents if ent._.calib_ent_score is not None]


def without_lists(nlp: Any, text: str) -> list[tuple[str, str, float]]:
    """The scores by the maps without lists."""
    step: EntityMap = nlp.get_pipe("calib_ent").spans.context
    maps = step.maps_
    step.maps_ = {needs: table for needs, table in maps.items() if not needs.endswith(LISTS)}
    try:
        return scored(nlp, text)
    finally:
        step.maps_ = maps


UNLISTED = (
    "Thrandil Gorvath met Zelmurix Quorvax in Brethmoor, and the two travelled to Ostrivane. "
    "Quorvax had worked for Velkridge Dynatronics before she married Gorvath."
)


def test_a_text_of_names_in_no_list_gets_the_scores_of_the_base_map_up_to_the_constant(calibrated):
    maps = calibrated.get_pipe("calib_ent").spans.context.maps_
    table, base = (maps[needs] for needs in ("ner, tagger, parser, lists", "ner, tagger, parser"))
    pairs = list(zip(scored(calibrated, UNLISTED), without_lists(calibrated, UNLISTED), strict=True))
    assert len(pairs) >= 3
    for (text, kind, score), (_, _, other) in pairs:
        move = np.log(score / (1 - score)) - np.log(other / (1 - other))
        assert move == pytest.approx(table[f"type*{kind}"] - base[f"type*{kind}"], abs=1e-6), text


def test_without_its_lists_a_pipeline_uses_the_map_without_them_and_says_so(calibrated, tmp_path, monkeypatch):
    text = "Barack Obama visited Google in London."
    expected = without_lists(calibrated, text)
    assert expected != scored(calibrated, text)
    calibrated.to_disk(tmp_path / "saved")
    monkeypatch.setattr(names, "list_folder", lambda: tmp_path)
    names.load_lists.cache_clear()
    try:
        again = spacy.load(tmp_path / "saved")
        with pytest.warns(UserWarning, match=r"\[CW87\]"):
            scores = scored(again, text)
        assert scores == expected
    finally:
        names.load_lists.cache_clear()


# Examples of spaCy's documentation (usage guides, API pages, course), and `spacy.lang.en.examples`; with what is right among their entities.
NEWCOMERS: dict[str, set[str]] = {
    "Apple is looking at buying U.K. startup for $1 billion": {"Apple ORG", "U.K. GPE"},
    "Autonomous cars shift insurance liability toward manufacturers": set(),
    "San Francisco considers banning sidewalk delivery robots": {"San Francisco GPE"},
    "London is a big city in the United Kingdom.": {"London GPE", "the United Kingdom GPE"}, "Where are you?": set(),
    "Who is the president of France?": {"France GPE"}, "What is the capital of the United States?": {"the United States GPE"},
    "When was Barack Obama born?": {"Barack Obama PERSON"},
    "When Sebastian Thrun started working on self-driving cars at Google in 2007, few people outside of the company took him seriously.": {"Sebastian Thrun PERSON", "Google ORG"},
    "fb is hiring a new vice president of global policy": {"fb ORG"},
    "Ada Lovelace was born in London": {"Ada Lovelace PERSON", "London GPE"},
    "look what i found on google! 😂": {"google ORG"},
    "MyCorp Inc. is a company in the U.S.": {"MyCorp Inc. ORG", "U.S. GPE", "the U.S. GPE"},
    "Dr. Alex Smith chaired first board meeting of Acme Corp Inc.": {"Alex Smith PERSON", "Acme Corp Inc. ORG"},
    "Angela Merkel said to Theresa May that Germany would not negotiate with Britain.": {"Angela Merkel PERSON", "Theresa May PERSON", "Germany GPE", "Britain GPE"},
    "German Chancellor Angela Merkel and US President Barack Obama converse in the Oval Office inside the White House in Washington, D.C.": {"Angela Merkel PERSON", "Barack Obama PERSON", "US GPE", "Washington GPE", "Washington, D.C. GPE", "D.C. GPE"},
}  # fmt: skip


def test_newcomers_sentences(calibrated):
    """Right entities of the first sentences that people try rise in the mean. No cut-off, list or coefficient is chosen on them."""
    assert set(english_examples) <= set(NEWCOMERS)
    rows = [
        (score, other)
        for text, right in NEWCOMERS.items()
        for (name, kind, score), (_, _, other) in zip(scored(calibrated, text), without_lists(calibrated, text), strict=True)
        if f"{name} {kind}" in right
    ]
    assert rows
    after, before = np.array(rows).T
    assert after.mean() > before.mean()
    firsts = {"Apple": "Apple is looking at buying U.K. startup for $1 billion", "Barack Obama": "When was Barack Obama born?"}
    for name, text in firsts.items():
        assert {entity: score for entity, _, score in scored(calibrated, text)}[name] > 0.7
