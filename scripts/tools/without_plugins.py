"""Runs the tests of the core where the plug-ins are not installed.

    python scripts/tools/without_plugins.py FOLDER [PYTEST ARGUMENT ...]

FOLDER gets a copy of the checkout without spacy_calib/plugins and the entry points of plug-ins, and an environment that shares all other packages
with this one. What STILL of tests/test_imports.py names, and what those need, stays.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Collection, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
IGNORED = ("plugins", "docs", "scripts", "browser")


def plugins_that_stay() -> set[str]:
    """The plug-ins that the core imports still, with those that these may import."""
    tables = {}
    for node in ast.parse((ROOT / "tests" / "test_imports.py").read_text(encoding="utf8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in ("STILL", "BETWEEN")
        ):
            tables[node.targets[0].id] = ast.literal_eval(node.value)
    names: set[str] = set()
    queue = list(tables["STILL"])
    while queue:
        name = queue.pop()
        names.add(name)
        queue += tables["BETWEEN"].get(name, set()) - names
    return names


def copy_core(folder: Path, staying: Collection[str]) -> None:
    """Copy the files that git knows or would add, without the plug-ins that do not stay."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not _is_of_plugin(name, staying) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    setup = folder / "setup.cfg"
    lines = setup.read_text(encoding="utf8").splitlines(keepends=True)
    stays = "|".join(sorted(staying))
    gone = re.compile(rf"= spacy_calib\.plugins\.(?!(?:{stays})\b)")
    setup.write_text("".join(line for line in lines if not gone.search(line)), encoding="utf8")


def _is_of_plugin(name: str, staying: Collection[str]) -> bool:
    """Whether a file belongs to a plug-in that goes; packages of plug-ins themselves (`__init__.py`, `conftest.py`) stay."""
    place = re.match(r"(?:spacy_calib|tests)/plugins/(?:test_)?(\w+)(/|\.py$)", name)
    return place is not None and place[1] not in {*staying, "__init__", "conftest"}


def make_environment(folder: Path, checkout: Path) -> Path:
    """Make an environment with the copy installed, which finds all other packages where this process does. RETURNS (Path): Its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    shared = {sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("site-packages"))}
    (site / "zz_shared.pth").write_text("\n".join(sorted(shared)) + "\n", encoding="utf8")
    install = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--editable", str(checkout)]
    subprocess.run([python, "-m", "pip", *install], check=True)
    for info in checkout.glob("*.egg-info"):  # it would hide the entry points of what is installed
        shutil.rmtree(info)
    return python


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Tests of the core without plug-ins")
    parser.add_argument("folder", type=Path, help="Where the copy and its environment go; it must not exist")
    options, for_pytest = parser.parse_known_args(arguments)
    folder = options.folder.resolve()
    folder.mkdir(parents=True)
    staying = plugins_that_stay()
    print(f"plug-ins that stay: {', '.join(sorted(staying))}")
    copy_core(folder / "checkout", staying)
    python = make_environment(folder / "environment", folder / "checkout")
    ignored = [f"--ignore=tests/{name}" for name in IGNORED]
    return subprocess.run([python, "-m", "pytest", "tests", *ignored, *for_pytest], cwd=folder / "checkout").returncode


if __name__ == "__main__":
    sys.exit(main())
