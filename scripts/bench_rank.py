"""Peak memory of writing a queue of all tokens, and of the sentences that `select` writes, on a corpus repeated many times.

    python scripts/bench_rank.py ./calibrated --data test.spacy --repeat 40

MODEL is a pipeline written by `spacy calib fit`. The data are scored once, and their arrays repeated, so that what is measured is the
queue and not the pipeline: peak resident memory (ru_maxrss) before and after, of JSON Lines of all tokens, and the size of a .spacy file
of 300 sentences cut out of all the data as one document. Figures go to stdout.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_calib.cli.shared.loading import open_pipeline
from spacy_calib.cli.shared.results import write_pieces
from spacy_calib.cli.shared.scoring import score
from spacy_calib.cli.shared.texts import stream_examples
from spacy_calib.corpus.review.formats import WRITERS
from spacy_calib.corpus.review.ranking import review_order
from spacy_calib.corpus.review.tasks import tasks_of
from spacy_calib.corpus.review.units import unit_doubts, units_of
from spacy_calib.corpus.scored import ScoredCorpus
from spacy_calib.doc.cutting import cut


def peak_mib() -> float:
    """The highest resident memory of this process so far."""
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest / 2**20 if sys.platform == "darwin" else highest / 1024


def repeated(corpus: ScoredCorpus, times: int) -> ScoredCorpus:
    """The Docs again and again, without their spans."""
    n, docs = len(corpus), corpus.n_docs
    shifts = {"docs": docs, "rows": n}
    arrays: dict[str, Any] = {}
    for field in fields(corpus):
        value = getattr(corpus, field.name)
        if isinstance(value, np.ndarray):
            shift = np.repeat(np.arange(times), len(value)) * shifts[field.name] if field.name in shifts else 0
            arrays[field.name] = np.tile(value, times) + shift if field.name in shifts else np.tile(value, times)
    nothing = replace(corpus.spans, **{field.name: getattr(corpus.spans, field.name)[:0] for field in fields(corpus.spans)})
    return replace(corpus, **arrays, n_docs=docs * times, spans=nothing, origins=())


def write_queue(corpus: ScoredCorpus, path: Path) -> int:
    """All tokens as JSON Lines; the number of them."""
    units = units_of(corpus, "token")
    doubt = unit_doubts(corpus, units)
    tasks = tasks_of(corpus, units, doubt, review_order(doubt))
    write_pieces(path, WRITERS["jsonl"](tasks))
    return len(tasks)


def write_cuts(nlp: Language, path: Path, given: Path, n: int) -> tuple[int, int]:
    """(bytes of a file of n sentences of one long Doc, tokens of the Doc)."""
    whole = Doc.from_docs([nlp(example.reference.text) for example in stream_examples(nlp, path)])
    sentences = list(whole.sents)[:n]
    given.write_bytes(DocBin(docs=[cut(whole, one.start, one.end) for one in sentences], store_user_data=True).to_bytes())
    return given.stat().st_size, len(whole)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="A pipeline written by `spacy calib fit`")
    parser.add_argument("--data", type=Path, required=True, help="Texts: .spacy, .jsonl or .txt")
    parser.add_argument("--repeat", type=int, default=40, help="How many times the data are repeated")
    parser.add_argument("--sentences", type=int, default=300, help="Sentences to cut out")
    options = parser.parse_args(arguments)
    nlp, pipe = open_pipeline(options.model, None, code=None, gpu_id=-1)
    corpus = score(nlp, pipe, stream_examples(nlp, options.data), sentences=True)
    with tempfile.TemporaryDirectory() as folder:
        size, n_tokens = write_cuts(nlp, options.data, Path(folder) / "cuts.spacy", options.sentences)
        print(f"{options.sentences} sentences of a document of {n_tokens:,} tokens: {size / 1e6:.1f} MB")
        large = repeated(corpus, options.repeat)
        before = peak_mib()
        n = write_queue(large, Path(folder) / "queue.jsonl")
        print(f"A queue of {n:,} tokens: peak memory {before:,.0f} MiB before, {peak_mib():,.0f} MiB after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
