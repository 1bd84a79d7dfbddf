"""Who may import what read from the syntax tree of every module, and from two fresh processes."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import spacy_calib
from spacy_calib.cli import OF_PLUGINS, from_plugin
from spacy_calib.registry import REGISTERED

from .forked import alone
from .looping import each

PACKAGE = Path(spacy_calib.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py"))

# The rooms of the core, in the order of the flow: a module may import from its own room and from those that stand before it.
ROOMS = [
    "about", "errors", "schema", "types", "optional", "registry", "spacy_private", "pairs", "metrics", "annotations", "calibration", "context", "doc", "sources", "gold",
    "pipe", "cli", "__init__",
]  # fmt: skip
# Those that know no spaCy.
NUMERICAL = {"about", "errors", "schema", "types", "pairs", "metrics", "calibration", "context"}
HEAVY = {"scipy", "sklearn", "matplotlib", "torch", "cupy"}
# srsly writes what was learned, pyarrow reads Parquet: each is imported by the function that needs it. catalogue holds what is registered. None
# of them knows spaCy.
NUMERICAL_LIBRARIES = {"numpy", "scipy", "sklearn", "threadpoolctl", "srsly", "pyarrow", "catalogue"}
# A scikit-learn estimator is made of scikit-learn's classes. Nothing imports it before it is asked for.
ESTIMATORS = {"plugins/arrays/tag_calibrator"}


def room_of(module: str) -> str:
    return module.split("/")[0]


def is_numerical(module: str) -> bool:
    return room_of(module) in NUMERICAL


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _walk(node: ast.AST, inside_function: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below this one that runs, and whether it runs only when a function is called."""
    for child in ast.iter_child_nodes(node):
        if _is_type_checking(child):
            continue
        inside = inside_function or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield child, inside
        yield from _walk(child, inside)


@cache
def imports_of(module: str) -> list[tuple[str, bool]]:
    """(what, inside a function) for every import: 'numpy', or '.recalibrators/recalibrator' for a module of our own."""
    path = PACKAGE / f"{module}.py"
    folder = Path(module).parent
    found: list[tuple[str, bool]] = []
    for node, inside in _walk(ast.parse(path.read_text(encoding="utf8")), False):
        if isinstance(node, ast.Import):
            found += [(alias.name.split(".")[0], inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert node.module is not None
            found.append((node.module.split(".")[0], inside))
        elif isinstance(node, ast.ImportFrom):
            base = folder
            for _ in range(node.level - 1):
                base = base.parent
            if node.module:
                found.append((f".{(base / node.module.replace('.', '/')).as_posix()}", inside))
            else:
                found += [(f".{(base / alias.name).as_posix()}", inside) for alias in node.names]
    return found


def test_the_reader_of_imports_sees_them():
    assert ("numpy", False) in imports_of("pairs/bins")
    assert (".types", False) in imports_of("calibration/recalibrators/isotonic")
    assert ("sklearn", True) in imports_of("calibration/recalibrators/isotonic")
    assert ("spacy", False) in imports_of("pipe/factory")
    # Under TYPE_CHECKING only, and inside the function.
    assert (".annotations/span_events", True) in imports_of("pipe/factory")
    assert (".annotations/span_events", False) not in imports_of("pipe/factory")
    assert ".calibration/choice" not in {name for name, _ in imports_of("pipe/factory")}


def test_every_module_stands_in_a_room():
    assert {room_of(module) for module in MODULES} == {*ROOMS, "plugins"}


def plugin_of(module: str) -> str:
    return module.split("/")[1] if module.startswith("plugins/") else ""


@each([m for m in MODULES if room_of(m) != "plugins"])
def test_a_room_imports_only_what_stands_above_it(module):
    rank = ROOMS.index(room_of(module))
    for name in {name[1:] for name, _ in imports_of(module) if name.startswith(".")}:
        assert room_of(name) != "plugins", f"{module} imports the plug-in {name}; cli.OF_PLUGINS names it"
        assert ROOMS.index(room_of(name)) <= rank, f"{module} imports {name}, which stands below it"


@each([m for m in MODULES if m.count("/") > 1 and room_of(m) == "plugins"])
def test_no_plugin_imports_another(module):
    assert {plugin_of(name[1:]) for name, _ in imports_of(module) if name.startswith(".plugins/")} <= {plugin_of(module)}


@each([m for m in MODULES if is_numerical(m)])
def test_numerical_rooms_import_libraries_of_numbers_alone(module):
    for name in {name for name, _ in imports_of(module) if not name.startswith(".")}:
        assert name in NUMERICAL_LIBRARIES or name in sys.stdlib_module_names, f"{module} imports {name}"


@each(MODULES)
def test_no_module_imports_a_heavy_library_before_it_is_needed(module):
    early = {name for name, inside in imports_of(module) if not inside}
    assert not early & (HEAVY - {"sklearn"} if module in ESTIMATORS else HEAVY)


@each([m for m in MODULES if plugin_of(m) != "arrays"])
def test_estimators_are_imported_when_they_are_asked_for(module):
    early = {name[1:] for name, inside in imports_of(module) if name.startswith(".") and not inside}
    assert not early & {"plugins/arrays", *ESTIMATORS}


def test_what_the_core_calls_in_plugins_is_there():
    assert {name: from_plugin(name).__name__ for name in OF_PLUGINS} == {name: name for name in OF_PLUGINS}


@each(MODULES)
def test_no_module_imports_ours_by_absolute_name(module):
    assert "spacy_calib" not in {name for name, _ in imports_of(module)}


@each([m for m in MODULES if room_of(m) not in ("cli", "__init__", "about", "plugins")])
def test_nothing_but_the_command_line_imports_the_command_line(module):
    assert not [name for name, _ in imports_of(module) if name.startswith(".cli")]


def test_nothing_imports_presidio():
    # Nor may it: Presidio need not be there.
    users = [
        module for module in MODULES for name, _ in imports_of(module) if name in (".plugins/presidio", "presidio_analyzer")
    ]
    assert set(users) == {"plugins/presidio"}


def test_nothing_imports_spark():
    # Nor may it: Spark need not be there, and its functions get pandas.
    users = [
        module for module in MODULES for name, _ in imports_of(module) if name == "pyspark" or name.startswith(".plugins/spark")
    ]
    assert {plugin_of(module) for module in users} <= {"spark"}
    assert not [module for module in MODULES for name, _ in imports_of(module) if name.startswith("pyspark")]


def modules_after(*steps: str) -> list[set[str]]:
    """What sys.modules of a fresh process holds after each of these steps."""
    shown = "\n".join(f"{step}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))" for step in steps)
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, timeout=600, check=True, env=alone())
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


def test_entry_point_modules_import_nothing_heavy():
    # spaCy imports every entry point of spacy_cli in `python -m spacy`, and all of spacy_factories in every Language().
    without, alone, ours = modules_after(
        "import spacy, spacy.cli", "import spacy_calib", "import spacy_calib.pipe.factory, spacy_calib.cli"
    )
    assert "spacy_calib.doc.attributes" in alone  # it has registered with spaCy
    assert {"spacy_calib.pipe.factory", "spacy_calib.cli"} <= ours - alone
    assert not [name for name in alone if name.startswith("spacy_calib.") and ("cli" in name or "component" in name)]
    brought = {name.split(".")[0] for name in ours - without}
    assert not brought & HEAVY
    assert "scipy.stats" not in ours - without
    assert "scipy.optimize" not in ours - without


def test_numerical_rooms_run_without_spacy():
    # All numerical rooms with two arrays in a process where spaCy cannot be imported.
    # A bare module stands in for the package, which imports it.
    code = f"""
import sys, types
sys.modules["spacy_calib"] = package = types.ModuleType("spacy_calib")
package.__path__ = [{str(PACKAGE)!r}]
"""
    code += """
class Refuse:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("spacy", "thinc", "torch"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import numpy as np
from spacy_calib import metrics, types as nouns
from spacy_calib.calibration import grouped
from spacy_calib.calibration.choice import ChoiceInputs, choose_plan
from spacy_calib.calibration import cutoffs, spans, thresholds
from spacy_calib.calibration.grouping.tag_frequency import group_with_singletons
from spacy_calib.calibration.grouping.fixed import shared_group
from spacy_calib.calibration.recalibrators import Beta, HistogramBinning, Platt
from spacy_calib.calibration.selector import Selector
from spacy_calib.calibration.token_fit import FitData
from spacy_calib.pairs import scored_corpus as scored
from spacy_calib.pipe.record import drift, estimates, fit_record as record
from spacy_calib.plugins.expect import summary
from spacy_calib.plugins.review.queue import choosing, findings, formats, orders, tasks
made = nouns.Pairs(np.arange(20), np.zeros(20, int), np.linspace(0, 1, 20), np.arange(20) > 9, 20)
fitted = grouped.GroupedRecalibrator(HistogramBinning(2), shared_group(["A"], {"A": 1})).fit(made)
assert metrics.smce(made, fitted.predict(made.scores, made.tags)) is not None
pooled = grouped.GroupedRecalibrator(Beta(), shared_group(["A"], {"A": 1}), True).fit(made)
assert metrics.smce(made, pooled.predict(made.scores, made.tags)) is not None
data = FitData(made, np.zeros(20, int), np.arange(20) // 2, 1, 0.01)
inputs = ChoiceInputs(data, lambda grouping: grouping(["A"], {"A": 1}), scalable=False)
found = choose_plan(Selector({"platt": Platt()}, [1]), inputs)
assert found.table["chosen"] == "platt, 1 group"
groups = group_with_singletons(shared_group, ["O", "A"], {"A": 1}, ("O",))
rows, ones, yes = np.arange(40), np.ones(40, int), np.ones(40, bool)
found_spans = nouns.Spans(rows, rows + 1, ones, rows / 40, rows / 40, yes)
scores = spans.SpanRecalibrator(groups).fit(found_spans, rows > 19).predict(found_spans, found_spans.scores)
found = thresholds.find_threshold(scores, rows > 3, rows, 0.5, 0.5)
assert cutoffs.Cutoffs(0.5, 0.5, "all", {"all": found.cutoff}).accepts(scores, ones, ["O", "A"], groups).sum() == found.kept > 0
from spacy_calib.plugins.arrays import TagCalibrator
calibrator = TagCalibrator("isotonic").fit(np.eye(40)[:, :20] * 0.9, np.arange(40) % 20)
assert TagCalibrator.from_bytes(calibrator.to_bytes()).predict(np.eye(20)).tolist() == list(range(20))
"""
    assert "spacy_calib.calibration.grouped" in modules_after(code)[0]


def words_of_plugins() -> set[str]:
    """Names of modules, factories and registered things that come from plug-ins."""
    places = {point.name: point.value for point in distribution("spacy-calib").entry_points if point.group == "spacy_factories"}
    for names in REGISTERED.values():
        places |= names
    modules = {f"plugins.{plugin_of(module)}" for module in MODULES if plugin_of(module)}
    return {name for name, place in places.items() if ".plugins." in place} | modules - {"plugins.__init__"}


# But for the tables of what is registered, of commands and of what people import.
@each([m for m in MODULES if room_of(m) != "plugins" and m not in ("__init__", "cli/__init__", "registry")])
def test_no_string_of_the_core_names_a_plugin(module):
    words = re.compile(r"\b(" + "|".join(map(re.escape, sorted(words_of_plugins()))) + r")\b")
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not words.search(node.value), f"{module}:{node.lineno} names {words.search(node.value)[0]}"
