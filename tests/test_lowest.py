"""The versions that `make test-lowest` installs are the lowest that setup.cfg promises, and the pipe can be built on all of them."""

import configparser
import inspect
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import spacy

from spacy_calib.registry import REGISTERED, registry

ROOT = Path(__file__).parents[1]
GROUPS = ("spacy_factories", "spacy_scorers")
# Extras that are installed with the lowest versions too.
EXTRAS = ("plots",)


def promised() -> dict[str, str]:
    """Package -> lowest version, of what setup.cfg needs and of the extras."""
    if not (ROOT / "setup.cfg").is_file():
        pytest.skip("the tests do not stand in a source tree")
    given = configparser.ConfigParser()
    given.read(ROOT / "setup.cfg")
    lines = given["options"]["install_requires"] + "".join(given["options.extras_require"][extra] for extra in EXTRAS)
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)(,<[\d.]+)?", line) for line in lines.split())
    return {match[1]: match[2] for match in found if match is not None}


def installed() -> dict[str, str]:
    lines = (ROOT / "tests" / "lowest.txt").read_text(encoding="utf8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def numbers(version: str) -> tuple[int, ...]:
    parts = [int(part) for part in version.split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def test_what_make_test_lowest_installs_is_the_lowest_that_is_promised():
    wanted, given = promised(), installed()
    assert len(wanted) >= 13
    assert set(wanted) <= set(given)
    assert {name: numbers(given[name]) for name in wanted} == {name: numbers(version) for name, version in wanted.items()}


@pytest.mark.parametrize("factory", ["calib", "calib_ner", "calib_beam_ner"])
def test_the_pipe_can_be_added(factory):
    """spaCy 3.7.0 to 3.8.11: `field "nlp" not yet prepared so type is still a ForwardRef`."""
    assert spacy.blank("xx").add_pipe(factory) is not None


def test_registered_functions_have_annotations_that_every_confection_can_read():
    """The confection of spaCy before 3.8.12 looks up no names in annotations that are strings, which `from __future__ import annotations`
    makes of all: `field "scaling" not yet prepared so type is still a ForwardRef`.
    """
    entries = [
        point.load() for group in GROUPS for point in entry_points(group=group) if point.module.startswith("spacy_calib.")
    ]
    entries += [getattr(registry, kind).get(name) for kind, names in REGISTERED.items() for name in names]
    assert len(entries) >= 30
    for entry in entries:
        for parameter in inspect.signature(entry).parameters.values():
            if isinstance(parameter.annotation, str):
                assert eval(parameter.annotation, {}) is not None, entry  # a NameError is the fault
