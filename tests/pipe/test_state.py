"""The one schema of the saved state: what is damaged and has a right checksum is refused as a whole, and nothing is believed."""

import gc
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from spacy.language import Language

from spacy_calib import CalibError
from spacy_calib.calibration.adaptation.adaptation import Adaptation, AdaptationMap
from spacy_calib.calibration.saved import FORMAT_VERSION, pack
from spacy_calib.pipe import saved
from spacy_calib.pipe.record.fit_record import FitRecord, read_record
from spacy_calib.pipe.state import STATE, PipeState
from spacy_calib.schema import InvalidState, Serializable
from spacy_calib.types import Groups
from tests.pipe.pipelines import PIPELINES


@pytest.fixture(scope="module")
def pipelines() -> dict[str, Language]:
    return {name: make() for name, make in PIPELINES.items()}


def state_of(pipe: Any) -> dict[str, Any]:
    return saved.read(pipe.to_bytes(), dict, name="calib", path="")


def put(state: Any, path: str, value: Any) -> None:
    """Set what stands at "maps.maps.0.learned.y_"; an array's element where the path goes into one."""
    *above, last = path.split(".")
    for key in above:
        state = state[int(key) if isinstance(state, list) else key]
    if isinstance(state, np.ndarray):
        raise AssertionError(path)
    state[int(last) if isinstance(state, list) else last] = value


def with_element(array: np.ndarray, index: int, value: Any) -> np.ndarray:
    changed = array.astype(np.result_type(array, type(value)))
    changed[index] = value
    return changed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["isotonic", "auto", "context", "ner"])
def test_damage_with_a_right_checksum_is_refused_or_harmless(fuzz, pipelines, name):
    """A hundred of the cases of scripts/tools/fuzz_state.py, from 900,000 on."""
    fuzzer = fuzz.Fuzzer(pipelines[name])
    bad = {seed: wrong for seed in range(900_000, 900_100) if (wrong := fuzzer.try_one(seed)[1])}
    assert not bad


FALLING = {
    "@calib_recalibrators": "spacy-calib.Platt.v1", "settings": {}, "learned": {"coefficients_": np.array([-1.0, 0.0])},
}  # fmt: skip
DAMAGE = [
    ("isotonic", "maps.maps.0.learned.y_", lambda y: with_element(y, -1, np.nan), "learned.y_"),
    ("isotonic", "maps.maps.0.learned.y_", lambda y: with_element(y, -1, 2.0), "'learned.y_' is not an array of numbers from 0 to 1"),
    ("isotonic", "maps.maps.0.learned.y_", lambda y: with_element(y, 0, 1e300), "learned.y_"),
    ("isotonic", "maps.maps.0.learned.y_", lambda y: y[:-1], "'y_' has"),
    ("isotonic", "maps.maps.0.learned.y_", lambda y: y[::-1].copy(), "never falls"),
    ("isotonic", "maps.maps.0.learned.x_", lambda x: np.append(x, x[-1]), "an array that rises"),
    ("isotonic", "maps.maps.0.learned", lambda held: {}, "learned"),
    ("isotonic", "maps.pooled.settings", lambda held: {"size": 3}, "what spacy-calib.Isotonic.v1 takes"),
    ("isotonic", "maps.groups.of_tag", lambda of: with_element(of, 0, 2**31), r"'state.maps.groups' is not consistent: there are \d groups"),
    ("isotonic", "maps.groups.of_tag", lambda of: of[:-1], "have counts"),
    ("isotonic", "maps.groups.counts", lambda of: of.astype(float), "counts' is not an array of whole numbers"),
    ("isotonic", "labels", lambda labels: labels[:-1], "5 tags are judged by groups, there are 4 labels"),
    ("isotonic", "labels", lambda labels: "DET", "'state.labels' is not a list"),
    ("isotonic", "fit_info.layer", lambda layer: "x", "layer must be one of arc, .*but 'x' was given"),
    ("isotonic", "fit_info.pairs", lambda n: "many", "'state.fit_info.pairs' is not a whole number"),
    ("isotonic", "fit_info.threshold", lambda n: float("nan"), "fit_info.threshold"),
    ("isotonic", "fit_info.table.0.raw", lambda n: "x", r"'state.fit_info.table\[0\].raw' is not a number from 0 to 1"),
    ("isotonic", "fit_info.versions", lambda n: None, "'state.fit_info.versions' is not a table"),
    ("isotonic", "fit_info", lambda n: {}, "'fit_info' is empty"),
    ("isotonic", "record", lambda data: list(data), "'state.record' is not bytes"),
    ("auto", "scaling.learned.weights_", lambda n: with_element(n, 0, 1e300), "learned.weights_"),
    ("auto", "scaling.learned.codes_", lambda n: with_element(n, -1, 2**40), "a pair names a tag that there is not"),
    ("auto", "scaling.settings", lambda n: {"ridge": -1.0}, "what spacy-calib"),
    ("isotonic", "maps.pooled", lambda held: FALLING, "2 numbers, the first 1 of at least 0"),
    ("ner", "span_maps.0.weights", lambda n: n[:-1], "'weights' has"),
    ("ner", "span_maps", lambda n: n[:1], "a list of 2"),
    ("ner", "cutoffs.cutoffs.all", lambda n: 1.5, "cutoffs.cutoffs.all' is not a number from 0 to 1"),
    ("ner", "fit_info.spans.labels", lambda n: n[:-1], "span labels"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path", "damage", "why"), DAMAGE)
def test_a_refused_load_names_the_place_and_leaves_the_pipe_as_it_was(pipelines, name, path, damage, why):
    pipe = pipelines[name].get_pipe("calib")
    before, parts = pipe.to_bytes(), (pipe.learned, pipe.tokens, pipe.spans, pipe.spans.cutoffs)
    state = state_of(pipe)
    held = state
    for key in path.split("."):
        held = held[int(key) if isinstance(held, list) else key]
    put(state, path, damage(held))
    with pytest.raises(CalibError, match=why) as caught:
        pipe.from_bytes(saved.dump(state))
    assert caught.value.code == "C010"
    after = (pipe.learned, pipe.tokens, pipe.spans, pipe.spans.cutoffs)
    assert all(one is other for one, other in zip(after, parts, strict=True))
    assert pipe.to_bytes() == before


def test_other_labels_are_refused_before_anything_is_taken_over(pipelines):
    pipe = pipelines["isotonic"].get_pipe("calib")
    before = pipe.to_bytes()
    state = state_of(pipe)
    state["labels"] = state["labels"][::-1]
    with pytest.raises(CalibError, match="C020"):
        pipe.from_bytes(saved.dump(state))
    assert pipe.to_bytes() == before


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa6format\xa1x", b"\x93\x01", bytes(range(256))])
def test_the_collector_is_on_after_a_failed_load(pipelines, data):
    """srsly turns it off while it reads, and left it off."""
    assert gc.isenabled()
    with pytest.raises(CalibError, match="C010"):
        pipelines["isotonic"].get_pipe("calib").from_bytes(data)
    assert gc.isenabled()


@pytest.mark.parametrize("keep", [True, False])
def test_the_collector_is_left_as_it_was(pipelines, keep):
    pipe = pipelines["isotonic"].get_pipe("calib")
    data = pipe.to_bytes()
    (gc.enable if keep else gc.disable)()
    try:
        pipe.from_bytes(data)
        assert gc.isenabled() == keep
    finally:
        gc.enable()


def undeclared(given: Any, read: Any, where: str = "") -> list[str]:
    """Keys of a saved state that its schema leaves out."""
    if isinstance(read, Serializable):
        return undeclared(given, read.state(), where)
    if isinstance(given, dict):
        gone = [f"{where}.{key}" for key in given if key not in read]
        return gone + [key for name in read if name in given for key in undeclared(given[name], read[name], f"{where}.{name}")]
    if isinstance(given, list):
        return [key for i, one in enumerate(given) for key in undeclared(one, read[i], f"{where}[{i}]")]
    return []


def test_the_schema_declares_all_that_a_fit_saves(fitted, pipelines):
    """A key that is saved and not declared would be lost at the next load: one line in the form of its part declares it."""
    for nlp in (fitted, *pipelines.values()):
        state = state_of(nlp.get_pipe("calib"))
        assert undeclared(state, STATE(state, "state")) == []


def test_keys_that_no_form_declares_are_left_out(pipelines):
    pipe = pipelines["isotonic"].get_pipe("calib")
    before, state = pipe.to_bytes(), state_of(pipe)
    state["more"] = state["fit_info"]["more"] = state["maps"]["groups"]["more"] = {"x": np.ones(3)}
    assert pipe.from_bytes(saved.dump(state)).to_bytes() == before


def test_all_parts_are_among_what_is_saved(pipelines):
    held = {name: nlp.get_pipe("calib") for name, nlp in pipelines.items()}
    assert held["isotonic"].tokens.scaling is None
    assert held["context"].tokens.context is not None
    auto = held["auto"].tokens
    assert None not in (auto.scaling, auto.maps)
    assert None not in (held["ner"].spans.chosen, held["ner"].spans.candidates, held["ner"].spans.cutoffs)
    assert all(read_record(pipe) is not None for pipe in held.values())


def below(state: Any, path: str = "state") -> Iterator[tuple[dict[str, Any], str, str]]:
    """(table, key, place) of all that a form declares by name: not what somebody's labels or another package name."""
    for key, value in state.items() if isinstance(state, dict) else ():
        if path.rpartition(".")[2] not in KEYED:
            yield state, key, f"{path}.{key}"
        yield from below(value, f"{path}.{key}")
    for i, value in enumerate(state if isinstance(state, list) else ()):
        yield from below(value, f"{path}[{i}]")


# Tables whose keys no form declares, and what is written without being read.
KEYED = {"settings", "versions", "unknown", "label_map", "effects", "cutoffs", "weights", "hashed"}
WRITTEN = {"verdict"}


@pytest.mark.parametrize("name", PIPELINES)
def test_no_key_may_be_missing(pipelines, name):
    state = state_of(pipelines[name].get_pipe("calib"))
    STATE(state, "state")
    places = [(table, key, place) for table, key, place in below(state) if key not in WRITTEN]
    assert len(places) > 60
    for table, key, place in places:
        if "learned" in place.split(".")[:-1]:  # the class of a part reads it
            continue
        value = table.pop(key)
        with pytest.raises(InvalidState, match=re.escape(f"'{place}' is not there")):
            STATE(state, "state")
        table[key] = value


def test_no_key_of_a_record_may_be_missing(pipelines):
    state = read_record(pipelines["ner"].get_pipe("calib")).state()
    places = list(below(state, "record"))
    assert len(places) > 20
    for table, key, place in places:
        value = table.pop(key)
        with pytest.raises(InvalidState, match=re.escape(f"'{place}' is not there")):
            FitRecord.read(state, "record")
        table[key] = value


@pytest.mark.parametrize("key", ["fit_info", "judged_by", "record", "span_maps", "adaptations", "span_adaptations"])
def test_an_unfitted_state_has_nothing_of_a_fit(key, pipelines):
    value = state_of(pipelines["ner"].get_pipe("calib"))[key]
    if key.endswith("adaptations"):
        value = [adaptation_of(3).state()]
    with pytest.raises(InvalidState, match=f"'{key}' is there and 'maps' is not"):
        STATE({**PipeState().state(), key: value}, "state")


def adaptation_of(n_tags: int) -> Adaptation:
    return Adaptation(Groups(("all",), np.zeros(n_tags, dtype=np.intp)), AdaptationMap(), AdaptationMap())


@pytest.mark.parametrize("key", ["adaptations", "span_adaptations"])
def test_an_adaptation_to_other_labels_is_refused(key, pipelines):
    pipe = pipelines["ner"].get_pipe("calib")
    before, state = pipe.to_bytes(), state_of(pipe)
    with pytest.raises(CalibError, match="C010"):
        pipe.from_bytes(saved.dump({**state, key: [adaptation_of(99).state()]}))
    assert pipe.to_bytes() == before


def changed(state: Any, path: str, change: Any) -> bytes:
    """The bytes of a record with another value at "tokens.moment"."""
    above, key = path.split(".")
    state[above][key] = change(state[above][key])
    return pack(state, "spacy-calib record")


@pytest.mark.parametrize(("damage", "why"), [
    (lambda state: b"", "not a whole file of ours"),
    (lambda state: pack(state, "spacy-calib"), "format 'spacy-calib'"),
    (lambda state: pack(state, "spacy-calib record")[:-1], "not a whole file of ours"),
    (lambda state: changed(state, "profile.means", lambda means: means[:-1]), "'record.profile' is not consistent: 'means' has"),
    (lambda state: changed(state, "tokens.moment", lambda moment: moment * np.inf), "'record.tokens.moment' is not"),
    (lambda state: changed(state, "tokens.moment", lambda moment: np.ones((2, 2))), "'record.tokens' is not consistent: 'moment' has"),
])  # fmt: skip
def test_a_damaged_record_is_refused_when_it_is_asked_for(damage, why, pipelines):
    """Nothing else needs it: the pipe is loaded, and scores texts."""
    pipe = pipelines["isotonic"].get_pipe("calib")
    before, state = pipe.to_bytes(), state_of(pipe)
    data = damage(read_record(pipe).state())
    pipe.from_bytes(saved.dump({**state, "record": data}))
    with pytest.raises(CalibError, match=rf"C010.*pipe 'calib' in the record of its fit cannot be read \(.*{why}"):
        read_record(pipe)
    pipe.from_bytes(before)


@pytest.mark.parametrize("version", [0, 1, FORMAT_VERSION + 1])
def test_a_state_of_another_format_version_is_to_be_fitted_again(pipelines, version):
    pipe = pipelines["isotonic"].get_pipe("calib")
    before = pipe.to_bytes()
    with pytest.raises(CalibError) as caught:
        pipe.from_bytes(pack(state_of(pipe), "spacy-calib", version))
    versions = f"has format version {version}, but this spacy-calib reads version {FORMAT_VERSION}"
    assert str(caught.value) == f"[C011] The calibration data of pipe 'calib' {versions}; fit the pipe again."
    assert pipe.to_bytes() == before
