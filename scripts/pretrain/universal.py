"""What `card="universal"` reaches on gold of a language, entity by entity as users see them."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from frame import blocks, data_lines, say
from pretrain.entities import figures, judge_examples
from pretrain.sources import ENTITIES, FURTHER, GITHUB, Source, to_examples
from quality.readers import Documents, Sentence, open_entities

from spacy_calib import pretrained
from spacy_calib.plugins.pretrained.universal import UNIVERSAL


def spanish(split: str) -> Documents:
    """CoNLL-2002, which names no documents: each sentence is one."""
    columns = [list(zip(*map(str.split, lines), strict=True)) for lines in blocks(data_lines("conll2002_es", f"{split}.txt"))]
    return [[Sentence(str(i), list(words), {"ents": open_entities(list(tags))})] for i, (words, _, tags) in enumerate(columns)]


_SPANISH_LABELS = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "MISC": ""}
SPANISH = tuple(
    Source(f"CoNLL-2002 Spanish {split}", f"{GITHUB}nltk/nltk_data", "5db857e6f7df11eabb5e5665836db9ec8df07e28", "not free", partial(spanish, split), _SPANISH_LABELS, fitted=False)
    for split in ("train", "dev", "test")
)  # fmt: skip
SOURCES_OF = {"en": (*ENTITIES, *FURTHER), "es": SPANISH}


def universal_table(model: str) -> str:
    """Log loss, Brier score and ECE of raw and universal scores on each source of the pipeline's language, as a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pipelines of an older spaCy
        nlp = pretrained(model, card=UNIVERSAL)
    pipe: Any = nlp.get_pipe("calib_ent")
    calibration = pipe.spans
    nlp.remove_pipe("calib_ent")
    if nlp.lang not in SOURCES_OF:
        raise SystemExit(f"There is no gold of language '{nlp.lang}', only of {', '.join(SOURCES_OF)}.")
    lines = [
        "| source | entities | right | log loss | Brier | ECE | mean score less share right |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = []
    for source in SOURCES_OF[nlp.lang]:
        say(source.name)
        source_entities = judge_examples(nlp, list(to_examples(nlp, source.read(), source.size)), source.label_map)
        raw, right = source_entities.raw[source_entities.chosen], source_entities.right("exact")
        scores, _ = calibration.calibrate(source_entities.spans.take(source_entities.chosen), raw, source_entities.labels)
        rows.append([list(figures(values, right).values()) for values in (raw, scores)])
        bias = scores.mean() - right.mean()
        lines.append(f"| {source.name} | {len(right):,} | {right.mean():.3f} | {_cells(rows[-1])} | {bias:+.3f} |")
    return "\n".join([*lines, f"| mean | | | {_cells(np.mean(rows, axis=0))} | |"])


def _cells(row: object) -> str:
    return " | ".join(f"{raw:.3f} / {score:.3f}" for raw, score in zip(*np.asarray(row), strict=True))
