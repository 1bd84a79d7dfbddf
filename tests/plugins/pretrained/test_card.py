"""Every card that is shipped: readable, complete, within its licence and its gate; and cards that cannot be read."""

import contextlib
import json
import shutil
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pretrain.entities import CONTRADICTIONS, LISTS, SUPPORTS, evidence_names

from spacy_calib import CalibError
from spacy_calib.plugins.pretrained import card as cards
from spacy_calib.plugins.pretrained.applying import learned_state
from spacy_calib.plugins.pretrained.card import (
    CUTOFFS,
    Card,
    all_cards,
    card_folder,
    evaluate_cutoffs,
    lowest_cutoff,
    read_card,
    with_checksum,
)
from spacy_calib.plugins.pretrained.evidence import NEEDS
from spacy_calib.plugins.pretrained.matching import Match
from tests.cli.conftest import install
from tests.forked import in_own_process

FREE = ("CC0", "CC BY 3.0", "CC BY 4.0", "CC BY-SA 3.0", "CC BY-SA 4.0")
CARDS = list(all_cards())
TYPES = ("PERSON", "GPE", "ORG", "LOC", "FAC")


@pytest.fixture(params=CARDS, ids=[card.name for card in CARDS])
def card(request) -> Card:
    return request.param


def test_there_are_cards_of_both_english_pipelines():
    names = {f"en_core_web_{size}-{component}" for size in ("sm", "md") for component in ("ner", "tagger")}
    assert names <= {card.name for card in CARDS}


def test_sources_may_be_fitted_on_and_are_named_in_the_licences(card):
    licences = (card_folder().parent / "LICENSES_SOURCES").read_text(encoding="utf8")
    assert card.data["sources"]
    for source in card.data["sources"]:
        assert source["licence"] in FREE
        assert f"{source['name']}: {source['address']}, commit {source['commit']}, {source['licence']}" in licences
    share_alike = any("SA" in source["licence"] for source in card.data["sources"])
    assert card.data["licence"] == ("CC BY-SA 4.0" if share_alike else "CC BY 4.0")
    if card.data["lists"]:
        assert "GeoNames" in licences
    assert f"{card.name}.json and {card.data['parameters']}: {card.data['licence']}" in licences


def test_the_gate_of_components(card):
    for row in card.data["left_out"]:
        assert row["calibrated"]["log_loss"] < row["raw"]["log_loss"], row["source"]
        assert row["calibrated"]["brier"] <= row["raw"]["brier"] + (0.0005 if "WSJ" in row["source"] else 0.0), row["source"]


def test_labels_without_gold_have_no_score_and_those_that_fail_the_gate_keep_raw_ones(card):
    state = card.state()
    names = state["fit_info"]["label_map"] or {}
    assert {label for label, other in names.items() if not other} == set(card.data["without_gold"])
    applied = learned_state(Match(card, card.component), "")["context"]
    raw = applied["settings"].get("raw", [])
    assert [state["labels"][column] for column in raw] == card.data["failing"]
    if raw:
        inner = applied["settings"]["inner"]["@calib_contexts"]
        assert inner == state["context"]["@calib_contexts"] == "spacy-calib.Context.v1"


def test_the_expected_bias_by_hand():
    """Mean .02 and deviation .02 of three biases; the 97.5 % quantile of Student's t with two degrees is 4.30265: .02 * sqrt(4/3) times that."""
    card = Card(card_folder(), {"biases": {"a": 0.0, "b": 0.02, "c": 0.04}})
    assert card.expected_bias == pytest.approx((0.02 - 0.0993655, 0.02 + 0.0993655))
    assert (
        "between 0.079 too low and 0.119 too high (95 % prediction interval, from 3 sources, each left out of a fit once)."
        in card.expected_bias_words
    )
    assert Card(card_folder(), {"biases": {"a": 0.01}}).expected_bias == (-1.0, 1.0)


def test_sources_that_nothing_was_fitted_on_are_within_the_range(card):
    low, high = card.expected_bias
    unseen = card.data.get("further", []) + [row for row in card.data["left_out"] if row["source"] not in card.data["biases"]]
    assert all(low < row["bias"] < high for row in unseen)
    if card.component == "ner":
        assert [row["source"] for row in card.data["further"]] == [
            f"CrossNER {field}" for field in ("science", "ai", "politics", "literature", "music")
        ]
        assert not any("CrossNER" in source["name"] for source in card.data["sources"])


def test_maps_name_their_evidence(card):
    if card.component == "ner":
        assert list(card.data["maps"]) == list(NEEDS)
        expected = evidence_names(TYPES)
        lists = {f"{needs}{LISTS}": [*names, *SUPPORTS, *CONTRADICTIONS] for needs, names in expected.items()}
        assert {needs: set(table) for needs, table in card.data["maps"].items()} == {
            needs: set(names) for needs, names in (expected | lists).items()
        }


def test_states_hold_no_text_and_no_record(card):
    state = card.state()
    assert (state["record"], state["seen"], state["weights"]) == (None, None, "")


def install_cards(place: Path, folder: object, monkeypatch) -> None:
    """A package whose entry point names a folder of cards."""
    (place / "other.py").write_text(f"def folder():\n    return {folder!r}\n", encoding="utf8")
    install(place, "other", f"[{cards.ENTRY_POINTS}]\nother = other:folder\n")
    monkeypatch.syspath_prepend(place)


@in_own_process
def test_another_package_adds_cards(monkeypatch, tmp_path):
    data = json.loads((card_folder() / "en_core_web_sm-ner.json").read_text(encoding="utf8"))
    (tmp_path / "other.json").write_text(json.dumps(with_checksum({**data, "name": "other"}, tmp_path)), encoding="utf8")
    own = [one.name for one in all_cards()]
    (tmp_path / "package").mkdir()
    install_cards(tmp_path / "package", str(tmp_path), monkeypatch)
    assert [one.name for one in all_cards()] == [*own, "other"]


@pytest.mark.parametrize("folder", [None, "/no/such/folder"])
@in_own_process
def test_a_package_without_a_folder_is_named(monkeypatch, tmp_path, folder):
    install_cards(tmp_path, folder, monkeypatch)
    with pytest.raises(CalibError, match=r"\[C832\].*'other'.*other:folder"):
        list(all_cards())


@pytest.mark.parametrize(
    "change", [{"probe": None}, {"labels": "PERSON"}, {"left_out": [{}]}, {"cutoffs": {"precision": 0.8, "cutoff": 0.7}}]
)
def test_a_card_of_another_form_is_refused(tmp_path, change):
    data = json.loads((card_folder() / "en_core_web_sm-ner.json").read_text(encoding="utf8"))
    (tmp_path / "bad.json").write_text(json.dumps(with_checksum({**data, **change}, tmp_path)), encoding="utf8")
    with pytest.raises(CalibError, match=r"\[C831\] The pretrained calibration 'bad'.*bad.json"):
        read_card(tmp_path / "bad.json")


@pytest.fixture
def copied(tmp_path):
    """The file of a card of one's own, beside its parameters."""
    for file in card_folder().glob("en_core_web_sm-ner.*"):
        shutil.copy(file, tmp_path)
    return tmp_path / "en_core_web_sm-ner.json"


@pytest.mark.parametrize("suffix", [".json", ".msgpack.z"])
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_card_with_a_changed_byte_is_refused(copied, suffix, data):
    """A digit of a table that became another one is found by the checksum alone."""
    file = copied.with_name(copied.stem + suffix)
    content = file.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    file.write_bytes(content[:place] + bytes([content[place] ^ data.draw(st.integers(1, 255))]) + content[place + 1 :])
    with contextlib.suppress(CalibError):
        changed = read_card(copied).data
        assert suffix == ".json"
        assert changed == json.loads(content)  # another white space
    file.write_bytes(content)
    assert read_card(copied).name == "en_core_web_sm-ner"


def test_a_card_without_a_checksum_or_with_that_of_another_one_is_refused(copied):
    data = json.loads(copied.read_text(encoding="utf8"))
    for changed, why in (
        ({key: value for key, value in data.items() if key != "checksum"}, "checksum"),
        ({**data, "licence": "CC0"}, "the checksum does not match"),
    ):
        copied.write_text(json.dumps(changed), encoding="utf8")
        with pytest.raises(CalibError, match=rf"\[C831\].*{why}"):
            read_card(copied)


@pytest.mark.parametrize(("content", "why"), [
    (b"[" * 200_000 + b"]" * 200_000, "recursion|nested"),
    (b'{"name": ' + b"[" * 300 + b"]" * 300 + b"}", "nested more than 100 deep"),
    (b" " * ((1 << 24) + 1), "more than 16,777,216 bytes"),
    (b"\xff", "utf-8"),
])  # fmt: skip
def test_a_card_that_is_too_deep_or_too_large_is_refused(copied, content, why):
    copied.write_bytes(content)
    with pytest.raises(CalibError, match=rf"\[C831\].*({why})"):
        read_card(copied)


def test_parameters_that_unpack_to_gigabytes_are_refused_before_they_do(tmp_path):
    packer = zlib.compressobj(9)
    packed = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(256)), packer.flush()])
    (tmp_path / "bomb.z").write_bytes(packed)
    tracemalloc.start()
    with pytest.raises(CalibError, match=r"\[C831\].*unpacks to more than 16,777,216 bytes"):
        Card(tmp_path, {"name": "bomb", "parameters": "bomb.z"}).state()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 27


@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_damaged_parameters_are_refused(tmp_path, content):
    card = Card(tmp_path, {"name": "damaged", "parameters": "damaged.z"})
    if content is not None:
        (tmp_path / "damaged.z").write_bytes(content)
    with pytest.raises(CalibError, match=r"\[C831\].*'damaged'"):
        card.state()


def counts(scores: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    above = [(int((scores >= cutoff).sum()), int(right[scores >= cutoff].sum())) for cutoff in CUTOFFS]
    return {"right": int(right.sum()), "above": dict(zip(("accepted", "right"), zip(*above, strict=True), strict=True))}


# 20 entities with .9, all right but two; 20 with .6, half of them right. The other source has 40 with .8, 30 of them right.
FIRST = counts(np.repeat([0.9, 0.6], 20), np.array([True] * 18 + [False] * 2 + [True, False] * 10))
OTHER = counts(np.full(40, 0.8), np.array([True] * 30 + [False] * 10))


def test_precision_is_the_mean_of_sources_and_nothing_accepted_reaches_none():
    results = {result["cutoff"]: result for result in evaluate_cutoffs([FIRST, OTHER])}
    assert (results[0.7]["mean"], results[0.7]["worst"]) == (pytest.approx((0.9 + 0.75) / 2), 0.75)
    assert results[0.7]["kept"] == pytest.approx((18 / 28 + 1) / 2)
    assert (results[0.85]["mean"], results[0.85]["worst"]) == (0.45, 0)  # the other source accepts nothing


def test_the_lowest_cutoff_by_the_mean_and_the_worst():
    chosen = lowest_cutoff([FIRST, OTHER], 0.8, 0.7)
    assert (chosen["cutoff"], chosen["worst"]) == (0.61, 0.75)
    assert lowest_cutoff([FIRST, OTHER], 0.8, 0.7, step=5)["cutoff"] == 0.65
    assert lowest_cutoff([FIRST, OTHER], 0.8, 0.8) is None
    assert lowest_cutoff([FIRST, OTHER], 0.95, 0.85) is None


def test_few_accepted_entities_reach_no_precision():
    few = counts(np.repeat([0.9, 0.5], [9, 11]), np.repeat([True, False], [9, 11]))
    assert lowest_cutoff([few], 0.9, 0.8) is None


@pytest.mark.parametrize("name", ["en_core_web_sm-ner", "en_core_web_md-ner"])
def test_the_cutoffs_of_the_cards(name):
    card = cards.find_card(name)
    default, stricter = card.choose_cutoff(None), card.choose_cutoff(0.9)
    assert default["precision"] == 0.8 <= default["worst"]
    assert stricter["mean"] >= 0.9
    assert stricter["worst"] >= 0.8
    assert stricter["kept"] < default["kept"]
    sources = card.data["cutoffs"]["sources"]
    assert lowest_cutoff(sources, 0.0, 0.0)["cutoff"] == 0.01
    assert [source["right"] for source in sources] == [row["right"] for row in card.data["left_out"]]


def test_nested_cutoffs_keep_their_promise_on_the_source_left_out():
    for name in ("en_core_web_sm-ner", "en_core_web_md-ner"):
        rows = cards.find_card(name).data["left_out"]
        precisions = [row["accepted_right"] / row["accepted"] for row in rows]
        assert min(precisions) >= 0.77
        assert sum(precisions) / len(rows) >= 0.8


def test_a_precision_that_is_not_reached_is_refused_and_tags_have_no_cutoff():
    with pytest.raises(CalibError, match=r"\[C839\].*'en_core_web_sm-ner'.*0.999.*calib threshold"):
        cards.find_card("en_core_web_sm-ner").choose_cutoff(0.999)
    assert cards.find_card("en_core_web_sm-tagger").choose_cutoff(0.9) is None
