"""An `Evaluation` in Python: what its tables, slices and comparisons are, and that they are computed once."""

from __future__ import annotations

import pytest

from spacy_calib.cli.evaluate_command import evaluate
from spacy_calib.cli.evaluating.evaluation import evaluate_pipeline
from spacy_calib.cli.evaluating.options import EvaluateRun
from spacy_calib.cli.evaluating.outputs import Section
from spacy_calib.errors import CalibError
from spacy_calib.metrics.slices import SliceRow


@pytest.fixture(scope="module")
def evaluation(calibrated_ner, entity_test):
    return evaluate_pipeline(EvaluateRun(str(calibrated_ner), entity_test, bins=5))


def test_its_tables_are_the_result_of_the_command(evaluation, calibrated_ner, entity_test):
    assert evaluation.tables == evaluate(str(calibrated_ner), entity_test, bins=5)
    assert list(evaluation.tables) == ["calib_ent"]


def test_its_units_are_those_of_the_table_in_bins_and_groups(evaluation):
    ((pipe, corpus, one),) = evaluation.fitted_pipes()
    assert list(one.units) == ["entities", "tokens"]
    for unit, view in one.units.items():
        table = evaluation.table_of(pipe.name, unit)
        assert (view.n_bins, len(view)) == (5, table["pairs"]) == (table["bins"], table["pairs"])
        assert [row["group"] for row in table["errors"]] == ["all", *view.groups.names, "mean"]
        assert len(view.starts) == len(view.ends) == len(view)
    assert corpus.docs.max() < len(evaluation.examples)
    assert one.units is one.units


def test_raw_scores_have_units_without_places(ner_model, entity_test):
    raw = evaluate_pipeline(EvaluateRun(str(ner_model), entity_test, component="ner"))
    assert raw.fitted_pipes() == []
    (one,) = raw.pipes
    assert {name: len(view.starts) for name, view in one.units.items()} == {"entities": 0, "tokens": 0}
    assert [row["calibrated"] for row in raw.table_of(one.gold_scores.name, "entities")["errors"]].count(None) >= 3
    with pytest.raises(CalibError, match="C027|C056"):
        evaluate_pipeline(EvaluateRun(str(ner_model), entity_test, component="ner"), fitted_only=True)


def test_slices_are_typed_rows_and_a_section_stands_in_its_table(calibrated_ner, entity_test, register):
    register("calib_keys", "size", lambda doc: "long" if len(doc) > 6 else "short")
    own = evaluate_pipeline(EvaluateRun(str(calibrated_ner), entity_test))
    sections = own.slices("size")
    assert [(section.pipe, section.unit, section.key) for section in sections] == [
        ("calib_ent", "entities", "slices"), ("calib_ent", "tokens", "slices"),
    ]  # fmt: skip
    for section in sections:
        assert section.rows["rows"]
        assert all(list(row) == list(SliceRow.__annotations__) for row in section.rows["rows"])
    own.add([*sections, Section("", "", "", None), Section("calib_ent", "tokens", "mine", 1)])
    assert own.tables["calib_ent"]["entities"]["slices"] is sections[0].rows
    assert own.tables["calib_ent"]["mine"] == 1
    assert len(own.sections) == 4
