"""Replace words by others of their length in scored Docs: how many keep the old score, and what a Doc's block weighs and costs.

python scripts/stale_words.py ./calibrated --docs 100000
"""

from __future__ import annotations

import random
import string
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import make_parser
from spacy.tokens import Doc

from spacy_calib.doc.blocks import find_blocks

TEXT = "the old dog saw Jordan in New York , and nobody asked why it did not bark at all ."


def replaced(doc: Doc, i: int, word: str) -> Doc:
    """A Doc with another word, with the scores of the old one."""
    words = [word if token.i == i else token.text for token in doc]
    other = Doc(doc.vocab, words=words, spaces=[bool(token.whitespace_) for token in doc], tags=[token.tag_ for token in doc])
    other.user_data = doc.user_data
    return other


def kept_scores(doc: Doc, n: int, seed: int) -> int:
    """How many of n words, each put in the place of one of its length, read a score by Token._.calib_score."""
    rng, n_kept = random.Random(seed), 0
    for _ in range(n):
        i = rng.randrange(len(doc))
        word = "".join(rng.choices(string.ascii_lowercase, k=len(doc[i])))
        if word != doc[i].text:
            n_kept += replaced(doc, i, word)[i]._.calib_score is not None
    return n_kept


def seconds(function: Callable[[], object], n: int = 2000) -> float:
    """The fastest of five runs, for one call."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(n):
            function()
        times.append((time.perf_counter() - start) / n)
    return min(times)


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("pipeline", type=Path, help="the folder of a pipeline whose tagger is calibrated")
    parser.add_argument("--docs", type=int, default=50_000, help="Docs with one word replaced")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    nlp = spacy.load(options.pipeline)
    doc = nlp(TEXT)
    for name, scored in (("as scored", doc), ("read from bytes", Doc(nlp.vocab).from_bytes(doc.to_bytes()))):
        n_kept = kept_scores(scored, options.docs, options.seed)
        print(f"{name}: {n_kept:,} of {options.docs:,} replaced words keep a score")
    (block,) = (block for _, block in find_blocks(doc.user_data, "calib"))
    n_bytes = sum(value.nbytes for value in block.values() if isinstance(value, np.ndarray))
    print(f"a block of {len(doc)} tokens: {n_bytes:,} bytes of arrays, Doc.to_bytes {len(doc.to_bytes()):,} bytes")
    pipe: Any = nlp.get_pipe("calib")
    batch = [doc] * 64
    print(f"writing it, with the tagger: {1e6 * seconds(lambda: list(pipe.pipe(batch, batch_size=64)), 5) / 64:.0f} us a Doc")
    print(f"reading Token._.calib_score of all its tokens: {1e6 * seconds(lambda: [t._.calib_score for t in doc]):.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
