"""The view of a Doc's scores, and what plug-ins add to it."""

from __future__ import annotations

import pytest

from spacy_calib.doc import view as views
from spacy_calib.errors import CalibError

from ..conftest import examples_for, run_upstream


class Point:
    """An entry point of a package."""

    def __init__(self, name, function):
        self.name, self.load = name, lambda: function


def test_samples_come_from_what_is_installed(fitted, monkeypatch):
    (example,) = run_upstream(fitted, examples_for(fitted, 1, seed=5))
    view = example.predicted._.calib
    points = [Point("other", None), Point("sample", lambda *arguments: list(arguments))]
    monkeypatch.setattr(views, "entry_points_of", lambda group: points if group == "spacy_calib_view" else ())
    given, n, seed = view.sample(3, seed=7)
    assert given is view
    assert (n, seed) == (3, 7)
    monkeypatch.setattr(views, "entry_points_of", lambda group: ())
    with pytest.raises(CalibError, match=r"\[C418\] Whole annotations cannot be sampled.*install all of spacy-calib"):
        view.sample()


def test_what_samples_and_cannot_be_imported_is_a_sentence(fitted, monkeypatch):
    def fail():
        raise ImportError("no such library")

    (example,) = run_upstream(fitted, examples_for(fitted, 1, seed=5))
    point = Point("sample", None)
    point.value, point.load = "broken_package:sample", fail
    monkeypatch.setattr(views, "entry_points_of", lambda group: [point])
    with pytest.raises(CalibError, match=r"\[C105\] What samples annotations .*broken_package:sample.*no such library"):
        example.predicted._.calib.sample()
