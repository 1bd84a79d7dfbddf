"""What other packages register is found by its short name, and tried by `auto` where its class says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from spacy_calib import CalibError
from spacy_calib.calibration.recalibrators import Platt, Recalibrator
from spacy_calib.calibration.registered import recalibrators, scalings
from spacy_calib.calibration.scaling import Scaling, TemperatureScaling
from spacy_calib.cli.info import _scaling_line
from spacy_calib.pipe.registered import make_selector, metrics
from spacy_calib.pipe.saved import load_part
from spacy_calib.registry import registry

from ..tokens import LABELS, draw_tokens, fit_data
from .test_guarantees import pipeline


class Halved(Recalibrator):
    """Half of every score."""

    registered = "elsewhere.Halved.v1"
    short = "halved"
    n_parameters = 0
    tried_by_auto = True

    def _fit(self, scores, hits, weights):
        pass

    def _predict(self, scores):
        return scores / 2


class Mild(TemperatureScaling):
    registered = "elsewhere.Mild.v1"
    short = "mild"
    tried_by_auto = True


class Shared(Scaling):
    """Moves every tag by one share towards even chances: what the contract of a scaling asks for, and no more."""

    registered = "elsewhere.Shared.v1"
    short = "shared"
    biased = False

    def __init__(self):
        self.share_ = None

    @property
    def fitted(self):
        return self.share_ is not None

    @property
    def n_tags(self):
        return 8 if self.fitted else 0

    def size(self):
        self._check_fitted()
        return 1

    def fit(self, pairs, n_tags):
        self.share_ = 0.1
        return self

    def _scale(self, rows, tags, scores, counted):
        return (1 - self.share_) * scores + self.share_ / 8

    def _learned(self):
        return {"share_": self.share_}

    def load_learned(self, learned):
        self.share_ = learned["share_"]
        return self


def group(grouping):
    return grouping(LABELS, dict.fromkeys(LABELS, 10))


def test_each_kind_is_listed_by_its_short_names():
    ours = ["identity", "temperature", "platt", "beta", "histogram", "scaling-binning", "isotonic"]
    assert [short for short in recalibrators() if short in ours] == ours
    assert [short for short in scalings() if short in ("temperature", "vector", "matrix")] == [
        "temperature",
        "vector",
        "matrix",
    ]
    assert metrics()
    assert all(callable(one) for one in metrics().values())


@pytest.mark.parametrize("kind", ["calib_recalibrators", "calib_scalings"])
def test_the_name_on_the_class_is_the_one_it_is_registered_by(kind):
    listed = {"calib_recalibrators": recalibrators, "calib_scalings": scalings}[kind]()
    assert {made.registered for made in listed.values()} == set(getattr(registry, kind).get_all())
    assert all(made.short == short for short, made in listed.items())


def test_auto_tries_by_default_what_it_always_tried():
    selector = make_selector()
    numbers = {"temperature": 1, "platt": 2, "beta": 3, "isotonic": 20}
    found = {short: one.n_parameters for short, one in selector.methods.items()}
    assert numbers.items() <= found.items()
    assert list(found.values()) == sorted(found.values())  # fewer numbers first: of two alike the simpler one is kept
    assert "matrix" in selector.scalings


def test_what_another_package_registers_is_tried_by_auto(register):
    register("calib_recalibrators", "elsewhere.Halved.v1", Halved)
    register("calib_scalings", "elsewhere.Mild.v1", Mild)
    selector = make_selector(n_folds=2, n_groups=[1], one_vs_rest=False)
    assert next(iter(selector.methods)) == "halved"
    assert {"matrix", "mild"} <= set(selector.scalings)
    selector.scalings = {"mild": selector.scalings["mild"]}  # others take their time
    trials = selector(fit_data(draw_tokens(600, 1), lowest=1e-4), group).table["trials"]
    assert {"halved", "isotonic"} <= {trial["method"] for trial in trials}
    assert {trial["scaling"] for trial in trials} == {"", "mild"}
    assert {trial["size"] for trial in trials if trial["candidate"] == "TFG-1 halved"} == {0}
    assert type(make_selector(methods=["halved"]).methods["halved"]) is Halved
    state = Halved().fit(np.array([0.5]), np.array([1])).state()
    assert load_part(state, name="calib").predict([0.5]).tolist() == [0.25]


def test_a_scaling_of_another_kind_is_fitted_shown_and_saved(register):
    """What `info` shows used to ask every scaling for a temperature: a pipe with one that has none could be saved and not be loaded."""
    register("calib_scalings", "elsewhere.Shared.v1", Shared)
    nlp = pipeline({"scaling": {"@calib_scalings": "elsewhere.Shared.v1"}})  # saved and loaded by pickling
    calib = nlp.get_pipe("calib")
    assert type(calib.tokens.scaling) is Shared
    assert _scaling_line(calib.fit_info.scaling) == "elsewhere.Shared.v1 (1 numbers)"


def test_what_does_not_ask_to_be_tried_is_tried_only_where_it_is_named(register):
    class Shy(Halved):
        registered = "elsewhere.Shy.v1"
        short = "shy"
        tried_by_auto = False

    register("calib_recalibrators", "elsewhere.Shy.v1", Shy)
    assert "shy" in recalibrators()
    assert "shy" not in make_selector().methods
    assert list(make_selector(methods=["shy", "platt"]).methods) == ["shy", "platt"]


def test_what_has_no_short_name_goes_by_its_registered_one(register):
    class Plain(Platt):
        registered = "elsewhere.Plain.v1"
        short = ""

    register("calib_recalibrators", "elsewhere.Plain.v1", Plain)
    assert recalibrators()["elsewhere.Plain.v1"].registered == "elsewhere.Plain.v1"


def test_a_function_that_needs_arguments_has_no_prototype(register):
    def make(strength: float) -> Halved:
        raise AssertionError("called")

    register("calib_recalibrators", "elsewhere.Needy.v1", make)
    assert not [one for one in recalibrators().values() if one.registered == "elsewhere.Needy.v1"]


def test_what_is_registered_need_not_be_hashable(register):
    @dataclass
    class Lengths:
        unit: int = 1

        def __call__(self, doc):
            return [len(doc) / self.unit]

    register("calib_metrics", "elsewhere.Lengths.v1", Lengths())
    assert "elsewhere.Lengths.v1" not in metrics()  # it needs a Doc


def test_two_of_one_short_name_are_refused_by_both_names(register):
    class Rival(Platt):
        registered = "elsewhere.Rival.v1"
        short = "platt"

    register("calib_recalibrators", "elsewhere.Rival.v1", Rival)
    with pytest.raises(CalibError, match=r"\[C185\].*'platt'.*spacy-calib\.Platt\.v1 and elsewhere\.Rival\.v1"):
        recalibrators()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"scalings": ["platt"]}, r"scalings must be some of temperature, vector, matrix, but \['platt'\]"),
        ({"methods": []}, "methods must be some of identity, temperature"),
        ({"methods": ["vector"]}, "methods must be some of"),
    ],
)
def test_names_that_nothing_has_are_refused(settings, sentence):
    with pytest.raises(CalibError, match=rf"C001.*{sentence}"):
        make_selector(**settings)


def test_no_scalings_at_all_can_be_asked_for():
    assert make_selector(scalings=[]).scalings == {}


def test_a_short_name_that_a_class_inherits_is_not_its_own(register):
    class Heir(Platt):
        registered = "elsewhere.Heir.v1"

    register("calib_recalibrators", "elsewhere.Heir.v1", Heir)
    assert type(recalibrators()["platt"]) is Platt
    assert type(recalibrators()["elsewhere.Heir.v1"]) is Heir


def test_a_function_that_presets_what_another_makes_has_no_claim_to_its_short_name(register):
    register("calib_recalibrators", "elsewhere.Preset.v1", Platt)
    assert recalibrators()["platt"].registered == "spacy-calib.Platt.v1"
    assert "elsewhere.Preset.v1" in recalibrators()
