"""The sdist and the wheel hold the whole package and work without the source tree; so does a packaged pipeline."""

import configparser
import email
import importlib
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest
import spacy
import srsly

import spacy_calib
from spacy_calib.about import URL_IS_PLACEHOLDER
from spacy_calib.about import __url__ as HOME
from spacy_calib.registry import REGISTERED
from tests import readme
from tests.conftest import revive
from tests.made import examples_before_calib

ROOT = Path(__file__).parents[1]
# What the spaCy projects in configs/ make when they are run in a checkout.
MADE_BY_PROJECTS = {"assets", "corpus", "training", "calibrated", "accepting", "metrics", "cache"}
PARTS_OF_PAGES = {f"spacy_calib/{name}" for name in ("plugins/report/page.css", "plugins/report/page.html.j2")}


def _not_sources(folder: str, names: list[str]) -> set[str]:
    """What a checkout holds beside the sources: none of it may be needed to build, nor find its way into what is built."""
    patterns = [".*", "__pycache__", "*.egg-info", "build", "dist", "demo", "site", "htmlcov"]
    made = MADE_BY_PROJECTS if Path(folder).parent.name == "configs" else set()
    return shutil.ignore_patterns(*patterns, *made)(folder, names)


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a command outside the source tree; RAISES AssertionError: it failed."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**env, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    for module in ("build", "setuptools"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed, so nothing can be built")
    if not (ROOT / "setup.cfg").is_file():
        pytest.skip("the tests do not stand in a source tree")
    folder = tmp_path_factory.mktemp("build")
    shutil.copytree(ROOT, folder / "source", ignore=_not_sources)
    (folder / "source" / "site").mkdir()
    (folder / "source" / "site" / "index.html").write_text("a built site")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source", cwd=folder)
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The Python of a fresh environment with the wheel in it, which sees the packages of this one but not the source tree."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed, so the wheel cannot be")
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel, cwd=folder)
    # A line in a .pth file makes the other packages importable, but no .pth file beside them is read: no editable install.
    (site / "others.pth").write_text(str(Path(spacy.__file__).parents[1]) + "\n")
    return python


def modules_in_source() -> set[str]:
    return {file.relative_to(ROOT).as_posix() for file in (ROOT / "spacy_calib").rglob("*.py")}


def cards_in_source() -> set[str]:
    """Cards, their parameters, lists of names, and their licences."""
    folder = ROOT / "spacy_calib" / "plugins" / "pretrained"
    files = (folder / "LICENSES_SOURCES", *(folder / "cards").iterdir(), *(folder / "lists").iterdir())
    return {file.relative_to(ROOT).as_posix() for file in files}


def test_the_wheel_holds_every_module_the_type_marker_and_the_licence(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert modules_in_source() <= names
    assert PARTS_OF_PAGES | {"spacy_calib/py.typed"} <= names
    assert any(name.endswith("LICENSE") and ".dist-info/" in name for name in names)
    assert sum(info.compress_size for info in zipfile.ZipFile(wheel).infolist() if "/pretrained/" in info.filename) < 1_400_000
    assert wheel.stat().st_size < 1_900_000
    assert any(name.endswith("LICENSES_SOURCES") and ".dist-info/" in name for name in names)
    assert cards_in_source() <= names
    assert {name.split("/")[0] for name in names} == {"spacy_calib", wheel.name.split("-py3")[0] + ".dist-info"}


def test_the_wheel_names_every_entry_point_and_each_can_be_imported(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        given = configparser.ConfigParser(delimiters=("=",))
        given.optionxform = str
        given.read_string(archive.read(name).decode("utf8"))
    in_wheel = {(group, name, value) for group in given.sections() for name, value in given[group].items()}
    ours = distribution("spacy-calib").entry_points
    assert in_wheel == {(point.group, point.name, point.value) for point in ours}
    assert all(callable(point.load()) for point in ours)


def test_the_wheel_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
        metadata = archive.read(name).decode("utf8")
    assert f"Version: {spacy_calib.__version__}\n" in metadata
    licence = "MIT AND CC-BY-SA-4.0 AND CC-BY-4.0"  # of the code, of the cards of pretrained calibrations, and of their list of places
    assert f"License: {licence}\n" in metadata or f"License-Expression: {licence}\n" in metadata
    assert "Requires-Python: >=3.10\n" in metadata
    for requirement in ("spacy", "numpy", "scipy", "scikit-learn", "thinc", "typer", "wasabi", "tqdm", "srsly"):
        assert f"Requires-Dist: {requirement}" in metadata
    for extra in ("transformers", "plots", "presidio", "spark", "test", "dev", "docs", "coverage"):
        assert f"Provides-Extra: {extra}\n" in metadata
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: presidio-analyzer")]
    assert needed
    assert all("extra ==" in line for line in needed)  # nobody needs Presidio who does not ask for it
    assert any("presidio" in line.partition("extra ==")[2] for line in needed)


def test_the_sdist_holds_what_the_wheel_is_built_from_and_the_tests_with_all_that_they_read(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert (
        modules_in_source()
        | PARTS_OF_PAGES
        | cards_in_source()
        | {"setup.py", "setup.cfg", "pyproject.toml", "LICENSE", "spacy_calib/py.typed"}
        <= names
    )
    for folder in ("tests", "scripts", "configs", "docs"):
        sources = {file.relative_to(ROOT).as_posix() for file in (ROOT / folder).rglob("*") if file.is_file()}
        made = {name for name in sources if set(name.split("/")[:-1]) & {"__pycache__", *MADE_BY_PROJECTS}}
        assert sources - made <= names, folder
    assert {"Makefile", "MANIFEST.in", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "mkdocs.yml"} <= names
    assert not [name for name in names if name.startswith(("site/", "htmlcov/"))]  # what is built of docs/ is not a source


def test_the_citation_and_the_readme_name_this_version():
    assert srsly.read_yaml(ROOT / "CITATION.cff")["version"] == spacy_calib.__version__
    assert f"\nVersion {spacy_calib.__version__}, Python 3.10 to 3.13, " in (ROOT / "README.md").read_text(encoding="utf8")


# Links that lead nowhere without the files of the repository, in all forms that Markdown and HTML have.
RELATIVE = re.compile(
    r"""\]\((?!https?:)[^)]*\)|^\[[^\]]+\]:\s*(?!https?:)\S+|\b(?:src|srcset|href)=["'](?!https?:)[^"']*""", re.M
)


def description_of(metadata: bytes) -> str:
    return str(email.message_from_string(metadata.decode("utf8")).get_payload())


@pytest.fixture(scope="module")
def text_for_index() -> Callable[..., str]:
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["text_for_index"]


def test_the_text_for_an_index_has_no_relative_link(built, wheel):
    """In METADATA of the wheel and in PKG-INFO of the sdist; nor pictures and links to an address that is a placeholder."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
        texts = [description_of(archive.read(name))]
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name for name in archive.getnames() if name.endswith("PKG-INFO")]
        texts += [description_of(archive.extractfile(name).read()) for name in names]
        (name,) = [name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/README.md")]
        relative = archive.extractfile(name).read().decode("utf8")
    assert len(texts) == 1 + len(names) >= 2
    for text in texts:
        assert text.startswith("# spacy-calib\n")
        assert "Kranzlein" in text
        assert RELATIVE.findall(text) == []
        assert not URL_IS_PLACEHOLDER or ("![" not in text and "<picture>" not in text and HOME not in text)
    assert relative == (ROOT / "README.md").read_text(encoding="utf8")
    assert len(RELATIVE.findall(relative)) >= 15  # of the sdist, whose files are beside it


def test_links_lead_to_the_files_of_the_tag_once_there_is_an_address(text_for_index):
    relative = (ROOT / "README.md").read_text(encoding="utf8")
    text = text_for_index(relative, "https://example.org/us/ours", "v1.2", False)
    assert RELATIVE.findall(text) == []
    links = re.findall(r"\[[^\]]*\]\(https://example\.org/us/ours/blob/v1\.2/([^)#]+)", text)
    pictures = re.findall(r'src(?:set)?="https://example\.org/us/ours/raw/v1\.2/([^"]+)"', text)
    assert len(pictures) == 2
    assert len(links) + len(pictures) == len(RELATIVE.findall(relative))
    assert all((ROOT / path).exists() for path in (*links, *pictures))


def test_words_of_links_remain_and_pictures_go_where_the_address_is_a_placeholder(text_for_index):
    text = "See [limits](docs/limits.md#a) and [spaCy](https://spacy.io). ![A picture](docs/a.png)"
    given = "https://example.org", "v1"
    assert text_for_index(text, *given, True) == "See limits and [spaCy](https://spacy.io). "
    assert "[limits](https://example.org/blob/v1/docs/limits.md#a)" in text_for_index(text, *given, False)
    assert "![A picture](https://example.org/raw/v1/docs/a.png)" in text_for_index(text, *given, False)
    assert text_for_index('A\n\n<picture><img src="docs/a.svg"></picture>\n\nB', *given, True) == "A\n\nB"


@pytest.mark.parametrize(
    "link", ['<img src="docs/a.png">', '<a href="docs/a.md">a</a>', "[a [b] c](docs/a.md)", "[a]: docs/a.md"]
)
def test_a_relative_link_that_would_be_left_ends_the_build(text_for_index, link):
    for placeholder in (True, False):
        with pytest.raises(SystemExit, match=r"README\.md: .* is a relative link that setup\.py cannot make whole"):
            text_for_index(f"Text\n\n{link}\n", "https://example.org", "v1", placeholder)


def test_twine_takes_what_is_built(built):
    if importlib.util.find_spec("twine") is None:
        pytest.skip("twine is not installed, so the files cannot be checked")
    shown = run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir(), cwd=built)
    assert shown.count("PASSED") == 2


def test_the_readme_runs_as_printed_with_the_wheel(installed, tmp_path):
    """On small made-up gold; all but the numbers is compared."""
    if importlib.util.find_spec(readme.COPY) is None:
        pytest.skip(f"{readme.COPY} is not installed, which stands for {readme.MODEL}")
    readme.leave_files(tmp_path)
    assert readme.type_readme(installed, tmp_path) == 3


SCRIPT = """
import runpy
import sys
import spacy
nlp = spacy.blank("en")
ner, beam = nlp.add_pipe("calib_ner"), nlp.add_pipe("calib_beam_ner")
pipe = nlp.add_pipe("calib")
import spacy_calib
from spacy_calib.registry import registry
print(spacy_calib.__file__)
print(type(ner).__mro__[1].__name__, ner.cfg["beam_width"], beam.cfg["beam_width"])
print(pipe.threshold, pipe.source.component, len(registry.calib_recalibrators.get_all()))
sys.argv = ["spacy", "calib", "--help"]
runpy.run_module("spacy", run_name="__main__")
"""


@pytest.fixture(scope="module")
def printed(installed, tmp_path_factory) -> list[str]:
    """What the installed wheel prints, in Python and as a command."""
    folder = tmp_path_factory.mktemp("elsewhere")
    return run(installed, "-W", "ignore", "-c", SCRIPT, cwd=folder).splitlines()


def test_the_wheel_works_without_the_source_tree(installed, printed):
    place = Path(printed[0])
    assert installed.parents[1] in place.parents
    assert ROOT not in place.parents
    assert printed[1] == "EntityRecognizer 1 32"
    assert printed[2] == f"0.01 tagger {len(REGISTERED['calib_recalibrators'])}"


def test_the_command_line_of_the_wheel_works(printed):
    shown = " ".join(printed[3:])
    assert all(command in shown for command in ("fit", "evaluate", "info", "threshold", "stock"))


# spacy.cli.package leaves its files open until they are forgotten.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed file:ResourceWarning")
def test_a_packaged_pipeline_gives_scores(trained_bytes, tmp_path, monkeypatch):
    """`spacy package` of a calibrated pipeline: the package names spacy-calib as a requirement and its tokens carry scores."""
    from spacy.cli.package import package

    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed, so no sdist can be built")
    nlp = revive(trained_bytes)
    calib = nlp.add_pipe("calib", after="tagger")
    calib.fit(examples_before_calib(nlp, 60, 2))
    nlp.to_disk(tmp_path / "calibrated")
    (tmp_path / "packages").mkdir()
    package(
        tmp_path / "calibrated", tmp_path / "packages", name="calibrated_tiny", version="1.0.0", create_wheel=False, silent=True
    )
    (sdist,) = (tmp_path / "packages").rglob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path / "unpacked", filter="data")

    monkeypatch.syspath_prepend(str(tmp_path / "unpacked" / "xx_calibrated_tiny-1.0.0"))
    module = importlib.import_module("xx_calibrated_tiny")
    try:
        packaged = module.load()
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "xx_calibrated_tiny"]:
            del sys.modules[name]
    text = "the old dog saw a duck ."
    assert [token._.calib_score for token in packaged(text)] == [token._.calib_score for token in nlp(text)]
    assert all(token._.calib_score is not None for token in packaged(text))
    assert any(requirement.startswith("spacy-calib") for requirement in packaged.meta["requirements"])
