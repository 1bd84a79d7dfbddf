"""An `Evaluation` in Python: frozen data, of which the tables, slices, page and pictures are functions."""

from dataclasses import FrozenInstanceError

import pytest

from spacy_calib.cli.evaluate_command import evaluate
from spacy_calib.cli.evaluating.evaluation import evaluate_pipeline
from spacy_calib.cli.evaluating.options import EvaluateRun
from spacy_calib.errors import CalibError


@pytest.fixture(scope="module")
def evaluation(calibrated_ner, entity_test):
    return evaluate_pipeline(EvaluateRun(str(calibrated_ner), entity_test, groups=2))


def test_its_tables_are_the_result_of_the_command(evaluation, calibrated_ner, entity_test):
    assert evaluation.to_dict() == evaluate(str(calibrated_ner), entity_test, groups=2)
    assert list(evaluation.to_dict()) == ["calib_ent"]
    with pytest.raises(FrozenInstanceError):
        evaluation.notes = ()
    with pytest.raises(FrozenInstanceError):
        evaluation.pipes[0].seen = None


def test_its_units_are_those_of_the_table_in_groups(evaluation):
    (one,) = evaluation.shown
    assert list(one.units) == ["entities", "tokens"]
    for name, unit in one.units.items():
        view, table = unit
        assert view.kind == name
        assert (view.n_bins, len(view)) == (table["bins"], table["pairs"])
        assert [row["group"] for row in table["errors"]] == ["all", *view.groups.names, "mean"]
        assert len(view.starts) == len(view.ends) == len(view)
    assert len(one.units["entities"].view.groups.names) == 2


def test_raw_scores_are_the_evaluation_of_an_unfitted_pipe(ner_model, entity_test):
    raw = evaluate_pipeline(EvaluateRun(str(ner_model), entity_test, component="ner"))
    (one,) = raw.pipes
    assert one.unfitted["fit"].endswith("--component ner")
    for unit in one.units.values():
        assert len(unit.view.starts) == len(unit.view) > 0
        assert unit.view.calibrated.tolist() == unit.view.pairs.scores.tolist()
    assert [row["calibrated"] for row in one.to_dict()["entities"]["errors"]].count(None) >= 3
    with pytest.raises(CalibError, match="C027|C056"):
        evaluate_pipeline(EvaluateRun(str(ner_model), entity_test, component="ner"), fitted_only=True)


def test_slices_are_rows_in_the_table_of_their_unit(calibrated_ner, entity_test, register):
    register("calib_keys", "size", lambda doc: "long" if len(doc) > 6 else "short")
    own = evaluate_pipeline(EvaluateRun(str(calibrated_ner), entity_test, by="size"))
    (one,) = own.pipes
    for unit in one.units.values():
        slices = unit.figures["slices"]
        assert slices["by"] == "size"
        assert {"slice", "n", "gap", "low", "high", "p", "calibrated", "floor95", "off"} <= set(slices["rows"][0])
    assert own.to_dict()["calib_ent"]["slices"] is one.units["tokens"].figures["slices"]
    assert own.to_dict()["calib_ent"]["entities"]["slices"] is one.units["entities"].figures["slices"]
