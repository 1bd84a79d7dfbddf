"""What commands print of pipes that read scores, and what `--unit` takes."""

from __future__ import annotations

import pytest
import spacy

from spacy_calib.calibration import registered
from spacy_calib.cli.shared import score_readers as shown
from spacy_calib.errors import CalibError
from spacy_calib.pipe.score_readers import score_readers

CALLED = {"called": ["text", "texts"], "event": "all tags right"}


def printed(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


class Reader:
    """Reads the scores of one prefix."""

    def __init__(self, attr, **more):
        self.attr = attr
        self.__dict__.update(more)

    def __call__(self, doc):
        return doc

    def reads_scores_of(self, attr):
        return attr == self.attr


def pipeline(**readers) -> spacy.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    for name, reader in readers.items():
        nlp._components.append((name, reader))
    return nlp


def test_the_pipes_that_read_a_prefix():
    a, b, c = Reader("calib"), Reader("calib", fitted=False), Reader("calib_ent", fitted=True)
    nlp = pipeline(a=a, b=b, c=c)
    assert score_readers(nlp, "calib") == {"a": a}
    assert score_readers(nlp, "calib", fitted_only=False) == {"a": a, "b": b}
    assert score_readers(nlp, "calib_ent") == {"c": c}


def test_means_without_gold(capsys):
    shown.show_means("mean", {**CALLED, "units": 0, "expected": None, "right": None})
    assert "None of the texts has gold for all its tokens" in printed(capsys)


def test_means(capsys):
    shown.show_means("mean", {**CALLED, "units": 1200, "expected": 0.456, "right": 0.5})
    text = printed(capsys)
    assert "mean: whole texts (event: all tags right)" in text
    assert "of 1,200 texts they expect 46 % to be right, and 50 % are." in text


def test_a_table_of_few_columns(capsys):
    shown.show_event_table(
        {**CALLED, "name": "mean", "units": 4, "right": 0.75, "rows": [{"name": "best", "loss": 0.25}]}, details=False
    )
    text = printed(capsys)
    assert "4 texts, 75.00 % right" in text
    assert "best 0.2500 -" in text
    shown.show_event_table({**CALLED, "name": "mean", "units": 0, "right": None, "rows": []}, details=False)
    assert "Nothing to evaluate: no text has both scores and gold." in printed(capsys)


def test_what_a_fit_learned(capsys):
    trials = [{"name": "tree (min_leaf 40)", "loss": 0.125}]
    info = {**CALLED, "units": 8, "right": 6, "product": 0.25, "chosen": "tree (min_leaf 40)", "trials": trials}
    shown.show_info("mean", Reader("calib", rivals=("raw", "mean score"), event_info=lambda: info))
    text = printed(capsys)
    assert "8 texts, 75.0 % right" in text
    assert "mean score 0.2500 tree (min_leaf 40) (chosen) 0.1250" in text


def test_no_package_fits_units(monkeypatch):
    monkeypatch.setattr(registered, "by_short", lambda name: {})
    with pytest.raises(CalibError, match="--unit must be left out, as no installed package fits whole units, but 'tree'"):
        shown.get_event("tree")


def test_units_are_events_with_a_short_name_that_can_be_fitted(monkeypatch):
    class Event:
        short = "paragraph"

        def fit(self, nlp, calib, examples):
            return None

    class Question:
        short = "text"

    events = {"paragraph": Event(), "text": Question(), "outside.Event.v1": Event()}
    monkeypatch.setattr(registered, "by_short", lambda name: events if name == "calib_events" else {})
    assert shown.get_event("paragraph") is events["paragraph"]
    for name in ("text", "outside.Event.v1"):
        with pytest.raises(CalibError, match=f"--unit must be one of paragraph, but '{name}'"):
            shown.get_event(name)
