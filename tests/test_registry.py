"""Every entry point and every registered name resolves, and the registries exist wherever spaCy loads our factory."""

import configparser
import importlib
import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_calib.registry import REGISTERED, REGISTRIES, registry
from tests.forked import alone
from tests.looping import each
from tests.pipe.pipelines import auto

DISTRIBUTION = "spacy-calib"
ENTRY_POINTS = sorted(importlib.metadata.distribution(DISTRIBUTION).entry_points, key=lambda point: (point.group, point.name))
OUR_REGISTRIES = sorted(REGISTRIES)
# (registry, name) of everything in the table.
NAMES = [(kind, name) for kind, places in REGISTERED.items() for name in places]


@each(ENTRY_POINTS)
def test_entry_point_resolves(point):
    assert callable(point.load()), point


@pytest.mark.parametrize(("kind", "family"), [
    ("groupings", "calibration.grouping.test_family"), ("recalibrators", "calibration.recalibrators.test_family"),
    ("scalings", "calibration.scaling.test_family"), ("metrics", "metrics.test_family"), ("sources", "sources.test_family"),
])  # fmt: skip
def test_everything_registered_has_a_row_in_its_family_test(kind, family):
    assert set(REGISTERED[f"calib_{kind}"]) == {case[0] for case in importlib.import_module(f"tests.{family}").CASES}


@each(NAMES)
def test_registered_function_says_its_name_and_has_a_versioned_one(entry):
    kind, name = entry
    function = getattr(registry, kind).get(name)
    assert name.rsplit(".v", 1)[1].isdigit()
    if inspect.isclass(function):
        assert getattr(function, "registered", name) == name
    else:
        assert f"Registered as {name}." in (inspect.getdoc(function) or "")
        assert function.__name__.startswith("make_")


@each(NAMES)
def test_every_argument_of_a_registered_function_is_annotated(entry):
    # The signature is the schema by which a config is checked.
    kind, name = entry
    for parameter in inspect.signature(getattr(registry, kind).get(name)).parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name


def test_the_installed_entry_points_are_those_of_setup_cfg():
    path = Path(__file__).parent.parent / "setup.cfg"
    if not path.is_file():
        pytest.skip("setup.cfg is not beside the tests (they run against an installed package)")
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str
    parser.read(path, encoding="utf8")
    written = {
        (group, *[part.strip() for part in line.split("=", 1)])
        for group, lines in parser["options.entry_points"].items()
        for line in lines.strip().splitlines()
    }
    assert written == {(point.group, point.name, point.value) for point in ENTRY_POINTS}, "install the package again"


def run(code: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own. paths (Path): Folders of more packages. RAISES AssertionError: it failed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=alone(*paths))
    assert done.returncode == 0, done.stderr
    return done


def test_a_fresh_process_has_the_registries_through_the_factory_only():
    # Nothing of ours is imported by name: Language() loads the entry point of the factory, and that creates them.
    code = f"""
import spacy, sys
from spacy.util import registry
names = {OUR_REGISTRIES!r}
assert "spacy_calib" not in sys.modules
assert not any(hasattr(registry, name) for name in names)
nlp = spacy.blank("xx")
nlp.get_factory_meta("calib")
assert all(hasattr(registry, name) for name in names)
made = registry.resolve({{"r": {{"@calib_recalibrators": "spacy-calib.Histogram.v1", "n_bins": 3}}}})["r"]
print(made.registered, made.n_bins)
"""
    assert run(code).stdout.strip() == "spacy-calib.Histogram.v1 3"


BROKEN = """
[spacy_calib_recalibrators]
broken.Map.v1 = not_there:make_map
failing.Map.v1 = failing:make_map
fine.Map.v1 = failing:make_fine
[spacy_calib_sources]
broken.Source.v1 = not_there:make_source
[spacy_calib_metrics]
broken.Metric.v1 = not_there:make_metric
"""


def test_a_broken_package_stops_nobody_but_who_asks_for_it(tmp_path):
    """An installed package whose entry points name a module that is not there, and a function that fails."""
    (tmp_path / "failing.py").write_text(
        "from spacy_calib.calibration.recalibrators import Platt\n"
        "def make_map():\n    raise RuntimeError('no licence')\n"
        "class make_fine(Platt):\n    registered, short = 'fine.Map.v1', 'fine'\n"
    )
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(BROKEN)
    auto().to_disk(tmp_path / "sure")
    code = f"""
import spacy
from spacy_calib import CalibError, TagCalibrator
from spacy_calib.registry import metrics
nlp = spacy.load({str(tmp_path / "sure")!r})
print(all(token._.calib_score is not None for token in nlp("the old dog saw a duck")))
assert metrics()
nlp.add_pipe("calib", "other", config={{"attr": "other", "context": {{"@calib_contexts": "spacy-calib.Context.v1"}}}})
TagCalibrator("fine").fit([[0.9, 0.1], [0.2, 0.8]] * 5, [0, 1, 1, 1, 0] * 2)
for block in ({{"@calib_recalibrators": "broken.Map.v1"}}, {{"@calib_recalibrators": "no.Map.v1"}}):
    try:
        spacy.blank("xx").add_pipe("calib", config={{"recalibrator": block}})
    except Exception as error:
        print(type(error).__name__, error)
"""
    done = run(code, tmp_path)
    for name, kind in (("Map", "recalibrators"), ("Metric", "metrics")):
        assert (
            f"[CW40] The entry 'broken.{name}.v1' of the registry calib_{kind} cannot be used (ModuleNotFoundError"
            in done.stderr
        )
    assert (
        "'failing.Map.v1' of the registry calib_recalibrators cannot be used (RuntimeError('no licence')) and is left out"
        in done.stderr
    )
    assert done.stderr.count("'broken.Map.v1'") == 1
    scored, refused, unknown = done.stdout.splitlines()[0], *[line for line in done.stdout.splitlines() if "Error" in line[:20]]
    assert scored == "True"
    assert refused.startswith(
        "CalibError [C500] The entry 'broken.Map.v1' of the registry calib_recalibrators cannot be imported"
    )
    assert unknown.startswith("RegistryError [E893]")
    assert "fine.Map.v1" in done.stdout


def test_creating_the_registries_again_keeps_those_that_are_there():
    before = [getattr(registry, name) for name in OUR_REGISTRIES]
    importlib.reload(importlib.import_module("spacy_calib.registry"))
    assert all(getattr(registry, name) is one for name, one in zip(OUR_REGISTRIES, before, strict=True))
