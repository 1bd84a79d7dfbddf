"""The bytes of an estimator: they give the same scores again, and nothing else is believed."""

import pickle

import catalogue
import numpy as np
import pytest
import srsly

from spacy_calib import TagCalibrator
from spacy_calib.calibration.recalibrators import HistogramBinning, Identity, ScalingBinning
from spacy_calib.calibration.saved import FORMAT_VERSION, pack, unpack
from spacy_calib.calibration.scaling import TemperatureScaling
from spacy_calib.errors import CalibError
from spacy_calib.plugins.arrays import saved
from spacy_calib.registry import REGISTRIES


class Elsewhere(Identity):
    """A map of another package."""

    registered = "Elsewhere.v1"


PARAMETERS = [
    {"method": "auto"},
    {"method": "isotonic", "n_groups": 2, "tag_counts": {"NOUN": 7}},
    {"method": "beta", "scaling": "vector", "tag_offsets": True, "normalize": True},
    {"method": ScalingBinning(3, scaling=HistogramBinning(4)), "scaling": TemperatureScaling(), "threshold": 0.0},
    {"method": HistogramBinning(4), "tag_offsets": True, "normalize": True},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=["auto", "counts", "scaled", "nested", "parts"])
def test_an_estimator_from_bytes_a_file_or_a_pickle_is_the_same(made, parameters, tmp_path):
    n = 200 if parameters["method"] == "auto" else 600
    calibrator = TagCalibrator(**parameters).fit(made.P[:n], made.y[:n], made.documents[:n])
    calibrator.to_disk(tmp_path / "calibrator.bin")
    copies = [
        TagCalibrator.from_bytes(calibrator.to_bytes()),
        TagCalibrator.from_disk(tmp_path / "calibrator.bin"),
        pickle.loads(pickle.dumps(calibrator)),
    ]
    for copy in copies:
        assert copy.predict_proba(made.P).tobytes() == calibrator.predict_proba(made.P).tobytes()
        assert copy.classes_.tolist() == calibrator.classes_.tolist()
        assert copy.selection_ == calibrator.selection_
        assert copy.n_features_in_ == 5
        assert copy.groups_.state()["of_tag"].tolist() == calibrator.groups_.state()["of_tag"].tolist()
        assert copy.held_out_ == calibrator.held_out_
    # Its parameters fit the same again.
    again = copies[0].fit(made.P[:n], made.y[:n], made.documents[:n])
    assert again.predict_proba(made.P).tobytes() == calibrator.predict_proba(made.P).tobytes()


def test_labels_may_be_numbers_and_columns_have_names(made):
    pandas = pytest.importorskip("pandas")
    numbers = TagCalibrator("platt", classes=[1, 2, 3, 4, 5]).fit(made.P, np.array([1, 2] * 300))
    assert TagCalibrator.from_bytes(numbers.to_bytes()).predict(made.P).tolist() == numbers.predict(made.P).tolist()
    frame = pandas.DataFrame(made.P, columns=list("ABCDE"))
    named = TagCalibrator.from_bytes(TagCalibrator("platt").fit(frame, ["A", "B"] * 300).to_bytes())
    assert named.feature_names_in_.tolist() == list("ABCDE")


def test_a_sentence_does_not_pour_out_what_the_file_holds(made):
    state = unpack(TagCalibrator("platt").fit(made.P, made.y).to_bytes(), "spacy-calib-arrays")
    for damage in (
        {"maps": {**state["maps"], "pooled": {**state["maps"]["pooled"], "@calib_recalibrators": "a" * 5000}}},
        {"unknown_gold": {"a" * 5000: "b"}},
    ):
        with pytest.raises(CalibError) as caught:
            TagCalibrator.from_bytes(pack({**state, **damage}, "spacy-calib-arrays"))
        assert len(str(caught.value)) < 400


def test_a_part_of_another_package_has_to_be_registered(made):
    data = TagCalibrator(Elsewhere()).fit(made.P, made.y).to_bytes()
    with pytest.raises(CalibError, match=r"\[C299\] .* it names 'Elsewhere.v1', which is not installed"):
        TagCalibrator.from_bytes(data)
    registry = REGISTRIES["calib_recalibrators"]
    registry("Elsewhere.v1", func=Elsewhere)
    try:
        assert isinstance(TagCalibrator.from_bytes(data).method, Elsewhere)
    finally:
        catalogue._remove((*registry.namespace, "Elsewhere.v1"))


def changed(data: bytes, change) -> bytes:
    state = unpack(data, saved.FORMAT)
    change(state)
    return pack(state, saved.FORMAT)


@pytest.mark.parametrize(("change", "why"), [
    (lambda state: state.pop("maps"), "'state.maps' is not there"),
    (lambda state: state.update(maps=None), "it has no maps"),
    (lambda state: state["classes"].pop(), "there are 4 classes, but groups of 5 tags"),
    (lambda state: state["parameters"].update(threshold=2.0), "'state.parameters.threshold' is not a number from 0 to 1"),
    (lambda state: state["parameters"].update(method={"a": 1}), "'state.parameters.method' is not a setting"),
    (lambda state: state["parameters"].update(method="nope"), "method must be one of auto"),
    (lambda state: state["parameters"].update(method="auto", tag_offsets=True), "chooses the tag_offsets by itself"),
    (lambda state: state["parameters"].update(normalize="all"), "normalize must be"),
    (lambda state: state["maps"]["pooled"]["learned"].clear(), "is not there"),
    (lambda state: state["unknown_gold"].update(q=-1), "'state.unknown_gold.q' is not a whole number"),
])  # fmt: skip
def test_a_state_of_another_form_is_refused(made, change, why):
    data = TagCalibrator("platt").fit(made.P, made.y).to_bytes()
    with pytest.raises(CalibError, match="No calibrator can be read from the bytes given") as caught:
        TagCalibrator.from_bytes(changed(data, change))
    assert caught.value.code == "C298"
    assert why in str(caught.value)


def test_other_files_are_refused(made, tmp_path):
    data = TagCalibrator("platt").fit(made.P, made.y).to_bytes()
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    cases = {"table.csv": "not a whole file of ours", "nowhere": "No such file", ".": "Is a directory"}
    for name, why in cases.items():
        with pytest.raises(CalibError, match=rf"\[C298\].*{why}"):
            TagCalibrator.from_disk(tmp_path / name)
    of_a_pipe = pack({}, "spacy-calib")
    for broken in (b"", data[:-1], data[:40], data[:-9] + b"x" + data[-8:], of_a_pipe, srsly.msgpack_dumps([])):
        with pytest.raises(CalibError, match=r"\[C298\]"):
            TagCalibrator.from_bytes(broken)
    for version in (1, FORMAT_VERSION + 1):
        why = rf"it has format version {version}, and this spacy-calib reads version {FORMAT_VERSION}; .* or fit it again"
        with pytest.raises(CalibError, match=rf"\[C299\] .* {why}"):
            TagCalibrator.from_bytes(pack({}, saved.FORMAT, version))
