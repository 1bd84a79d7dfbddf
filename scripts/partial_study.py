"""What do answers about predicted entities teach, beside full gold? Log loss of tokens and entities on other documents, as Markdown.

    python scripts/partial_study.py [--model MODEL] [--fit DEV.spacy --test TEST.spacy] [--map MAP]

By default en_core_web_sm and the first 500 sentences of WikiNEuRal's dev and test files. Each entity that the model finds is accepted or rejected by
the gold. "answers" has them as `calib fit` reads them from an annotation tool (`calib_rejected`), "entities outside" as
`doc.set_ents(accepted, outside=rejected, default="missing")` has them. Beside both stand the full gold, with the context of words and without: where
entities do not look at tokens (without context), and labels are grouped alike (`--groups 1`; else by gold that is not that of the answers, `--train-data`), their
maps are to be the same. The last column is the greatest difference to the row of full gold
with the same setting of context.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from frame import MODEL, bare, docs_in, head, make_parser, one_sentence, open_scored, row
from quality import readers
from quality.models import write_docs
from spacy.tokens import Doc, DocBin, Span

import spacy_calib
from spacy_calib.doc.annotations import REJECTED
from spacy_calib.metrics import log_losses
from spacy_calib.pairs.label_map import map_label, read_map
from spacy_calib.pipe.loading import load_pipeline

# Of the entities of OntoNotes, in those of WikiNEuRal.
MAP = (
    "PERSON=PER,ORG=ORG,GPE=LOC,LOC=LOC,FAC=LOC,NORP=MISC,EVENT=MISC,WORK_OF_ART=MISC,LANGUAGE=MISC,PRODUCT=MISC,LAW=MISC,"
    "DATE=,TIME=,PERCENT=,MONEY=,QUANTITY=,ORDINAL=,CARDINAL="
)
SENTENCES = 500


def asked(gold: Doc, found: Doc, table: dict[str, str] | None) -> tuple[list[Span], list[Span]]:
    """(accepted, rejected) entities of a prediction, in the gold Doc."""
    right = {(span.start, span.end, span.label_) for span in gold.ents}
    spans: tuple[list[Span], list[Span]] = [], []
    for one in found.ents:
        label = (map_label(table, one.label_, "", False) if table else one.label_) or one.label_
        spans[(one.start, one.end, label) not in right].append(Span(gold, one.start, one.end, label=label))
    return spans


def write_answers(nlp: Any, fit: Path, folder: Path, table: dict[str, str] | None) -> dict[str, Path]:
    """The gold in each form, by its name."""
    kinds: dict[str, list[Doc]] = {"answers": [], "entities outside": []}
    for kind, docs in kinds.items():
        for gold in docs_in(fit, nlp.vocab):
            accepted, rejected = asked(gold, nlp(bare(gold, nlp.vocab)), table)
            if kind == "answers":
                gold.set_ents(accepted, default="missing")
                gold.spans[REJECTED] = rejected
            else:
                gold.set_ents(accepted, outside=rejected, default="missing")
            docs.append(gold)
    files = {kind: folder / f"{kind}.spacy" for kind in kinds}
    for kind, file in files.items():
        DocBin(docs=kinds[kind], store_user_data=True).to_disk(file)
    return {"full gold": fit, **files}


def judged(model: Path, test: Path) -> tuple[list[float], Any]:
    """(log losses of tokens, raw and calibrated, and of entities; the calibrated scores of entities)."""
    corpus = open_scored(model, test)[2]
    losses = []
    for held, known in ((corpus, corpus.counted & (corpus.right >= 0)), (corpus.spans, corpus.spans.right >= 0)):
        hits = held.right[known] == 1
        losses += [float(log_losses(scores[known], hits).mean()) for scores in (held.raw, held.calibrated)]
    return losses, corpus.spans.calibrated


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--fit", type=Path, help="gold to fit on; with --test")
    parser.add_argument("--test", type=Path, help="gold to judge on")
    parser.add_argument("--map", help="labels of the model in those of the gold, see `calib fit --map`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, one_sentence():
        folder, table = Path(name), options.map
        fit, test = options.fit, options.test
        if fit is None:
            fit, test, table = folder / "dev.spacy", folder / "test.spacy", table or MAP
            for split, file in (("dev", fit), ("test", test)):
                write_docs(readers.entities("wikineural_en", split)[:SENTENCES], file)
        files = write_answers(load_pipeline(options.model), fit, folder, None if table is None else read_map(table))
        head("| gold | context | tokens raw | tokens | entities raw | entities | entities differ by |", 2)
        for context in (False, True):
            full = None
            for kind, file in files.items():
                output = folder / "fitted"
                settings = {"components.calib.context.when": "always"} if context else {"components.calib.context": None}
                given = {"label_map": table, "groups": 1, "overrides": settings}
                spacy_calib.fit(options.model, file, output, component="ner", force=True, silent=True, **given)
                losses, scores = judged(output, test)
                full = scores if full is None else full
                row(kind, "yes" if context else "no", *(f"{loss:.4f}" for loss in losses), f"{np.abs(scores - full).max():.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
