"""The saved form of a fitted pipe: what comes back, and what is refused."""

import random

import numpy as np
import pytest
import srsly

from spacy_calib import CalibError
from spacy_calib.calibration.recalibrators.binning import HistogramBinning, ScalingBinning
from spacy_calib.calibration.recalibrators.identity import Identity
from spacy_calib.calibration.recalibrators.isotonic import IsotonicRegression
from spacy_calib.calibration.saved import FORMAT_VERSION
from spacy_calib.pipe import saved
from tests.sentences import says

STATE = {
    "labels": ["DET", "NOUN", "ɔ̃"],
    "maps": {"x": np.linspace(0, 1, 7), "counts": np.arange(3), "none": None},
    "fit_info": {"threshold": 0.01, "docs": 3, "empty": {}},
}


def load(data):
    return saved.read(data, lambda state: state, name="calib", path="somewhere")


def test_what_was_dumped_comes_back():
    state = load(saved.dump(STATE))
    assert state["labels"] == STATE["labels"]
    assert state["fit_info"] == STATE["fit_info"]
    assert state["maps"]["none"] is None
    for key in ("x", "counts"):
        assert state["maps"][key].dtype == STATE["maps"][key].dtype
        assert state["maps"][key].tolist() == STATE["maps"][key].tolist()


def test_equal_states_give_equal_bytes():
    assert saved.dump(STATE) == saved.dump(STATE)


def test_the_bytes_are_msgpack_with_a_version_and_no_pickle():
    outer = srsly.msgpack_loads(saved.dump(STATE))
    assert (outer["format"], outer["version"]) == ("spacy-calib", FORMAT_VERSION)
    with pytest.raises(TypeError, match="can not serialize"):
        saved.dump({"an object": Identity()})


def test_every_flipped_byte_is_found():
    """In the body by the checksum, in the envelope by what it then says; never another exception, never another state."""
    data = saved.dump(STATE)
    wanted = repr(load(data))
    rng = random.Random(0)
    for i in range(len(data)):
        for bit in {0, 7, rng.randrange(8)}:
            damaged = bytearray(data)
            damaged[i] ^= 1 << bit
            try:
                state = load(bytes(damaged))
            except CalibError as error:
                assert error.code in ("C010", "C011")  # noqa: PT017
            else:
                assert repr(state) == wanted, f"byte {i} was flipped and another state came back"


def test_every_cut_is_found():
    data = saved.dump(STATE)
    for end in range(len(data)):
        with pytest.raises(CalibError, match=r"of pipe 'calib' in somewhere cannot be read"):
            load(data[:end])


@pytest.mark.parametrize("outer", [
    {},
    [],
    None,
    "spacy-calib",
    {"format": "another", "version": 1, "crc": 0, "body": b""},
    {"format": "spacy-calib", "version": FORMAT_VERSION, "crc": 0},
    {"format": "spacy-calib", "version": FORMAT_VERSION, "crc": 0, "body": "text"},
    {"format": "spacy-calib", "version": FORMAT_VERSION, "crc": 0, "body": b""},
    {"format": "spacy-calib", "version": True, "crc": 0, "body": b""},
    {"format": "spacy-calib", "version": 1.0, "crc": 0, "body": b""},
    {"format": "spacy-calib", "version": "2", "crc": 0, "body": b""},
])  # fmt: skip
def test_other_envelopes_are_refused(outer):
    with pytest.raises(CalibError, match=says("C010")) as caught:
        load(srsly.msgpack_dumps(outer))
    assert caught.value.code == "C010"


@pytest.mark.parametrize(
    "recalibrator",
    [Identity(), HistogramBinning(4), HistogramBinning(bin_size=9), IsotonicRegression(), ScalingBinning(5),
     ScalingBinning(3, scaling=HistogramBinning(6))],
)  # fmt: skip
def test_a_recalibrator_comes_back_through_the_registry(recalibrator):
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    recalibrator.fit(scores, rng.random(200) < scores)
    state = srsly.msgpack_loads(srsly.msgpack_dumps(recalibrator.state()))
    loaded = saved.load_part(state, name="calib")
    assert type(loaded) is type(recalibrator)
    assert loaded.settings() == recalibrator.settings()
    grid = np.linspace(0, 1, 101)
    assert loaded.predict(grid).tobytes() == recalibrator.predict(grid).tobytes()


def test_a_recalibrator_that_is_not_installed_is_named():
    state = {**Identity().state(), "@calib_recalibrators": "Elsewhere.v1"}
    with pytest.raises(CalibError, match=says("C012", given="Elsewhere.v1")):
        saved.load_part(state, name="calib")


def test_a_scaling_that_is_not_installed_is_named():
    state = ScalingBinning(5).state()
    state["settings"]["scaling"]["@calib_recalibrators"] = "Elsewhere.v1"
    with pytest.raises(CalibError, match=says("C012", given="Elsewhere.v1")):
        saved.load_part(state, name="calib")
