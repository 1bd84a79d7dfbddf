"""The steps of docs/start/thirty-documents.md on the five fields of CrossNER, as Markdown.

    python scripts/thirty_documents.py
    python scripts/thirty_documents.py science --model en_core_web_sm

Five sentences are a document. Every second document has no gold at first: thirty of them are chosen by `calib rank --to-adapt` and labelled
with their gold. Log loss and ECE are those of the entities in the other half. SPACY_CALIB_DATA names the data.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import spacy
from frame import MODEL, data_lines, docs_in, head, make_parser, one_sentence, row, spacy_command
from spacy.tokens import DocBin

from spacy_calib import adapt, evaluate, fit

FIELDS = ("science", "politics", "literature", "music", "ai")
N_LABELLED, N_FEW = 30, 10
TITLES = "| field | raw | pretrained | adapted to 10 | adapted to 30 | new fit on 30 | `fit` wrote |"


def write_halves(field: str) -> dict[str, Any]:
    """Write texts.txt and others.spacy in the current folder; return the gold Doc of each text."""
    Path(f"{field}.conll").write_text(
        "".join(f"{line}\n" for line in data_lines("crossner", f"{field}.conll")), encoding="utf8"
    )
    spacy_command("convert", f"{field}.conll", ".", "--converter", "ner", "--n-sents", 5)
    docs = docs_in(Path(f"{field}.spacy"), spacy.blank("en").vocab)
    gold = {doc.text.strip(): doc for doc in docs[0::2]}
    Path("texts.txt").write_text("".join(f"{text}\n" for text in gold), encoding="utf8")
    DocBin(docs=docs[1::2]).to_disk("others.spacy")
    return gold


def scores_of(model: str) -> tuple[str, str]:
    """Return log loss and ECE of entities in the other half, raw and calibrated, each pair as a cell."""
    scores = evaluate(model, "others.spacy")["calib_ent"]["entities"]["scores"]
    raw, calibrated_scores = ((scores["nll"][key], scores["ece"][key]) for key in ("raw", "calibrated"))
    return f"{raw[0]:.3f}, {raw[1]:.3f}", f"{calibrated_scores[0]:.3f}, {calibrated_scores[1]:.3f}"


def run_field(model: str, field: str) -> list[str]:
    """Return the cells of a field, made in the current folder."""
    gold = write_halves(field)
    spacy_command("calib", "pretrained", model, "pretrained", "-C", "ner")
    spacy_command("calib", "rank", "pretrained", "texts.txt", "--to-adapt", "--top", N_LABELLED, "--output", "batch.jsonl")
    batch = Path("batch.jsonl").read_text(encoding="utf8").splitlines()
    gold_docs = [gold[json.loads(line)["text"].strip()] for line in batch]
    DocBin(docs=gold_docs).to_disk("thirty.spacy")
    DocBin(docs=gold_docs[:N_FEW]).to_disk("ten.spacy")
    adapt("pretrained", "ten.spacy", "adapted-ten")
    adapt("pretrained", "thirty.spacy", "adapted")
    fit("pretrained", "thirty.spacy", "fitted", component="ner")
    fit("pretrained", "thirty.spacy", "new", component="ner", always=True)
    raw, pretrained = scores_of("pretrained")
    few, adapted, new, chosen = (scores_of(name)[1] for name in ("adapted-ten", "adapted", "new", "fitted"))
    choice = {new: "the new fit", adapted: "the adapted card", pretrained: "the card"}[chosen]
    return [field, raw, pretrained, few, adapted, new, choice]


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__, FIELDS)
    parser.add_argument("--model", default=MODEL)
    options = parser.parse_args(arguments)
    head(TITLES, 7)
    folder_before = Path.cwd()
    with one_sentence():
        for field in options.names:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                row(*run_field(options.model, field))
                os.chdir(folder_before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
