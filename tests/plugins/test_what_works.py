"""docs/reference/attributes.md: what every command does with every kind of thing, tried."""

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_calib import CalibError, render
from spacy_calib.cli import COMMANDS
from spacy_calib.cli.shared.examples import read_examples
from spacy_calib.pipe.pipeline import fitted_pipes, units_of
from spacy_calib.plugins.report.view_server import Viewer
from spacy_calib.plugins.spark.score_rows import score_rows
from tests.cli.conftest import CONTEXT, Outcome, bare_docs, calib, refuses, spacy_command
from tests.plugins.kinds import KINDS, Made, fit, make

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "attributes.md"
# A label with its score, as displaCy shows it.
SCORED = re.compile(r"(?:[01]\.\d{3}|&[lg]t;0\.\d{3})\s*</span>")
STYLES = {"render, style tokens": "tokens", "render, style ents": "ents"}
_NO_ENTITIES = "The pipe ... calibrates ... which predicts no entities; calibrate one that does"
# The sentences of a command that does not work with a kind; dots stand for names.
MESSAGES = {
    "fit, context": [
        "The setting context is for labels of tokens, but component ... labels whole documents; leave context out."
    ],
    "rank --unit sentence": [
        "The pipe ... calibrates ... which labels documents, so it has no scores of sentences; leave the unit out"
    ],
    "threshold --precision": [_NO_ENTITIES],
    "threshold --recall": [
        _NO_ENTITIES,
        "The pipe ... scores document categories ... but a cut-off for a recall needs the probability of being outside all entities; give --precision.",
        "The pipe ... has no probability that a token is outside all entities ... which a cut-off for a recall needs; find cut-offs for a precision",
    ],
    "render, style ents": ["The scores with the prefix ... are of ... not of entities; render them with style='tokens'."],
}


def calls(made: Made) -> dict[str, Callable[[], Outcome]]:
    """What a row of the table says -> the command; the first makes the pipeline that the others take."""
    fitted, data, folder = made.fitted, made.test, made.folder
    return {
        "fit": lambda: fit(made, "fitted"), "fit, context": lambda: fit(made, "context", CONTEXT),
        "evaluate": lambda: calib("evaluate", fitted, data),
        "evaluate, page": lambda: calib("evaluate", fitted, data, "--output", folder / "report.html"),
        "evaluate, picture": lambda: calib("evaluate", fitted, data, "--kind", "errors", "--output", folder / "errors.svg"),
        "rank": lambda: calib("rank", fitted, data),
        "rank --unit sentence": lambda: calib("rank", fitted, data, "--unit", "sentence"),
        "rank --to-adapt": lambda: calib("rank", fitted, data, "--to-adapt", "--top", 3),
        "audit": lambda: calib("audit", fitted, made.dev), "expect": lambda: calib("expect", fitted, data),
        "score_rows": lambda: rows_written(made),
        "threshold --precision": lambda: calib("threshold", fitted, data, "--precision", 0.6),
        "threshold --recall": lambda: calib("threshold", fitted, data, "--recall", 0.6),
        "adapt": lambda: calib("adapt", fitted, data, folder / "adapted"), "view": lambda: viewed(made),
        "info": lambda: calib("info", fitted), "stock": lambda: calib("stock", fitted, folder / "stock"),
        "spacy evaluate": lambda: spacy_command("evaluate", fitted, data, "--output", folder / "metrics.json"),
    }  # fmt: skip


def viewed(made: Made) -> Outcome:
    """What the page of `calib view` answers, of each thing that the pipeline says."""
    viewer, docs = Viewer(spacy.load(made.fitted)), DocBin().from_disk(made.few).get_docs(Language().vocab)
    text = " ".join(doc.text for doc in docs)
    pages = [html for view in viewer.views for html in viewer.show(text, view)["texts"].values()]
    return Outcome(int(not all(SCORED.search(html) for html in pages)), " ".join(pages))


def rows_written(made: Made) -> Outcome:
    """Whether the rows of what the pipeline labels have scores."""
    nlp = spacy.load(made.fitted)
    (pipe,) = fitted_pipes(nlp)
    docs = nlp.pipe(example.predicted for example in read_examples(nlp, made.test, gold_preproc=False))
    scores = score_rows(docs, pipe.attr, units_of(pipe)[0])["score"]
    return Outcome(int(not any(score is not None for score in scores)), f"{len(scores)} rows")


def table(*header: str) -> list[list[str]]:
    """The rows of the table of the page with this header."""
    (block,) = re.findall(rf"^\| {' [|] '.join(header)} \|\n.*\n((?:^\|.*\n)+)", PAGE.read_text(encoding="utf8"), flags=re.M)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in block.splitlines()]


@pytest.fixture(scope="module")
def page() -> dict[tuple[str, str], list[str]]:
    """(kind, command) -> the messages of the command if by the page it does not work with the kind; none if it works."""
    (tried,) = re.findall(r"^Tried with each: (.*?)\. ", PAGE.read_text(encoding="utf8"), flags=re.M)
    refusals: dict[tuple[str, str], list[str]] = {}
    for kind, _, refused in table("kind", "components", "does not work"):
        refusals |= {(kind, command): [] for command in re.findall("`([^`]+)`", tried)}
        refusals |= {(kind, command): MESSAGES[command] for command in re.findall("`([^`]+)`", refused)}
    return refusals


def test_the_page_names_every_kind_and_every_command(page, tmp_path):
    assert [kind for kind, *_ in table("kind", "components", "does not work")] == list(KINDS)
    assert set(page) == {(kind, command) for kind in KINDS for command in (*calls(Made(tmp_path)), *STYLES)}
    named = {command.partition(" ")[0] for _, command in page}
    # `pretrained` takes any stock pipeline that there is a card for.
    assert set(COMMANDS) - {"pretrained"} <= named


def refused_with(outcome: Outcome, messages: list[str]) -> bool:
    """Whether a command ended as one of these messages, with names in place of three dots."""
    for message in messages:
        with contextlib.suppress(AssertionError):
            for part in message.split(" ... "):
                refuses(outcome, part)
            return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_works_or_says_why_not(kind, page, tmp_path):
    made = make(KINDS[kind], tmp_path)
    wrong = []
    for command, call in calls(made).items():
        outcome, messages = call(), page[kind, command]
        works = outcome.code == 0 if not messages else refused_with(outcome, messages)
        if not works:
            wrong.append(f"{command}: {outcome.text}")
    assert wrong == []
    assert {"calib_smce", "calib_ent_smce"} & set(json.loads((tmp_path / "metrics.json").read_text()))
    render_works_or_says_why_not(kind, page, made)


def render_works_or_says_why_not(kind: str, page: dict[tuple[str, str], list[str]], made: Made) -> None:
    nlp = spacy.load(made.fitted)
    scored = [nlp(doc) for doc in bare_docs(nlp, KINDS[kind].docs(3, 64))]
    for command, style in STYLES.items():
        if not page[kind, command]:
            assert render(scored, style=style)
            continue
        (message,) = page[kind, command]
        with pytest.raises(CalibError, match=".*".join(map(re.escape, message.split(" ... ")))):
            render(scored, style=style)
