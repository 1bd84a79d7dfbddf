"""Pipelines that an older version saved: they load, and say of the same texts what they said then."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
import spacy

from tests.saved.make import HERE, PIPELINES, what_it_says

SAVED = sorted(HERE.glob("*.tar.xz"))


def unpack(file: Path, folder: Path) -> Path:
    with tarfile.open(file) as archive:
        for member in archive.getmembers():
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.extractfile(member).read())
    return folder


def same(found: object, expected: object) -> bool:
    """Equal, numbers to six places: another processor may round other last digits."""
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == (pytest.approx(expected, abs=1e-6) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("file", SAVED, ids=lambda file: file.name.removesuffix(".tar.xz"))
def test_a_saved_pipeline_says_what_it_said(file, tmp_path):
    version, name = file.name.removesuffix(".tar.xz").split("-")
    expected = json.loads((HERE / f"{version}.json").read_text(encoding="utf8"))[name]
    nlp = spacy.load(unpack(file, tmp_path / "then"))
    assert same(what_it_says(nlp), expected)
    # And so does what this version makes of it.
    nlp.to_disk(tmp_path / "now")
    assert same(what_it_says(spacy.load(tmp_path / "now")), expected)


def test_all_parts_are_among_what_was_saved(tmp_path):
    held = {}
    for name in PIPELINES:
        nlp = spacy.load(unpack(HERE / f"0.2.0-{name}.tar.xz", tmp_path / name))
        held[name] = nlp.get_pipe("calib")
    assert held["isotonic"].tokens.scaling is None
    assert held["context"].tokens.context is not None
    auto = held["auto"].tokens
    assert None not in (auto.scaling, auto.maps, auto.other, auto.intervals, auto.sets)
    assert None not in (held["ner"].spans.chosen, held["ner"].spans.candidates, held["ner"].spans.cutoffs)
    assert all(pipe.learned.record is not None for pipe in held.values())


def test_the_saved_pipelines_are_small():
    assert sum(file.stat().st_size for file in HERE.iterdir()) < 300_000 * len({file.name.split("-")[0] for file in SAVED})
