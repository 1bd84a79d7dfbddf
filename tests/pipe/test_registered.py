"""What other packages register is found by its short name, and compared by `auto` where its settings name it."""

from dataclasses import dataclass

import numpy as np
import pytest

from spacy_calib import CalibError
from spacy_calib.calibration.choice import ChoiceInputs, choose_plan
from spacy_calib.calibration.recalibrators import Platt, Recalibrator
from spacy_calib.calibration.scaling import Scaling, TemperatureScaling
from spacy_calib.calibration.selector import make_selector
from spacy_calib.cli.info_command import _scaling_line
from spacy_calib.pipe.saved import load_part
from spacy_calib.registry import metrics, recalibrators, registry, scalings
from spacy_calib.schema import number, record
from tests.made import TOKEN_LABELS, fit_data, sample_tokens

from .test_guarantees import pipeline


class Halved(Recalibrator):
    """Half of every score."""

    registered = "elsewhere.Halved.v1"
    short = "halved"
    n_parameters = 0

    def _fit(self, scores, hits, weights):
        pass

    def _predict(self, scores):
        return scores / 2


class Mild(TemperatureScaling):
    registered = "elsewhere.Mild.v1"
    short = "mild"


class Shared(Scaling):
    """Moves every tag by one share towards even chances: what another package's scaling has to define, and no more."""

    registered = "elsewhere.Shared.v1"
    short = "shared"
    biased = False
    _learned = ("share_",)
    learned_form = record({"share_": number()})
    n_tags = 8

    def __init__(self):
        super().__init__()

    def settings(self):
        return {}

    def describe(self):
        return {"name": self.registered, "biased": False, "temperature": None, "ridge": None, "size": 1}

    def fit(self, pairs, n_tags, *search):
        self.share_, self.ridge_ = 0.1, 1.0
        return self

    def _scale(self, rows, tags, scores, counted):
        return (1 - self.share_) * scores + self.share_ / 8


def group(grouping):
    return grouping(TOKEN_LABELS, dict.fromkeys(TOKEN_LABELS, 10))


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


def test_what_another_package_registers_is_compared_where_it_is_named(register):
    register("calib_recalibrators", "elsewhere.Halved.v1", Halved)
    register("calib_scalings", "elsewhere.Mild.v1", Mild)
    assert list(make_selector().methods) == ["isotonic"]
    assert next(iter(recalibrators())) == "halved"  # fewer numbers first
    assert "mild" in scalings()
    selector = make_selector(["halved", "platt"], [1])
    trials = choose_plan(selector, ChoiceInputs(fit_data(sample_tokens(600, 1), lowest=1e-4), group)).table["trials"]
    assert {trial["size"] for trial in trials if trial["candidate"] == "halved, 1 group"} == {0}
    assert "platt, 1 group" in {trial["candidate"] for trial in trials}
    assert type(selector.methods["halved"]) is Halved
    state = Halved().fit(np.array([0.5]), np.array([1])).state()
    assert load_part(state, name="calib").predict([0.5]).tolist() == [0.25]


def test_a_scaling_of_another_kind_is_fitted_shown_and_saved(register):
    register("calib_scalings", "elsewhere.Shared.v1", Shared)
    nlp = pipeline({"scaling": {"@calib_scalings": "elsewhere.Shared.v1"}})  # saved and loaded by pickling
    calib = nlp.get_pipe("calib")
    assert type(calib.tokens.scaling) is Shared
    assert _scaling_line(calib.fit_info.scaling) == "elsewhere.Shared.v1 (1 numbers)"


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


def test_a_name_that_nothing_has_is_refused():
    with pytest.raises(CalibError, match=r"C001.*methods must be some of identity, temperature.*\['vector'\]"):
        make_selector(["vector"])


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
