"""What labelled documents of a source that the fit did not see add to a pretrained calibration, and what its scores cost."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from clocks import ewt_texts
from frame import ewt_file
from pretrain.entities import Judged
from pretrain.sources import TO_THREE, uner
from pretrain.tags import JudgedTags
from quality.readers import make_docs
from spacy.tokens import DocBin

import spacy_calib
from spacy_calib.calibration.adaptation.adaptation import (
    PRETRAINED_SPAN_PRIOR,
    PRETRAINED_TOKEN_PRIOR,
    Adaptation,
    GoldEntries,
    Prior,
)
from spacy_calib.calibration.recalibrators import Platt
from spacy_calib.calibration.spans import SpanRecalibrator
from spacy_calib.metrics import log_loss
from spacy_calib.types import Floats, Groups, Ints

DRAWS = 20
# Predicted entities, or documents, that are labelled.
ENTITIES, DOCUMENTS = (20, 50, 100), (5, 10, 20)
# By so much log loss may an adaptation be worse in one draw of ten.
WORSE = 0.005


def study(
    source: str,
    entries: GoldEntries,
    groups: Groups,
    prior: Prior,
    sizes: Sequence[int],
    units: Floats,
    from_nothing: Callable[[Ints, Ints], Floats],
) -> list[dict[str, Any]]:
    """A row for each size: mean log loss of the leading entries of all other documents, before, after and by a fit from nothing.

    units (Floats): What each entry counts towards the size. from_nothing (Callable): (train, test) -> scores of the test entries that lead.
    """
    rows = []
    for size in sizes:
        losses = []
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(np.unique(entries.documents))
            counts = np.array([units[entries.documents == document].sum() for document in order[: 4 * size]])
            documents = order[: int(np.searchsorted(np.cumsum(counts), size)) + 1]
            is_labelled = np.isin(entries.documents, documents)
            train, test = np.flatnonzero(is_labelled), np.flatnonzero(~is_labelled)
            adaptation = Adaptation.fit(entries.take(train), groups, prior)
            new = entries.take(test)
            leads = np.flatnonzero(new.is_top)
            adapted_scores = adaptation.adjust(new.scores, new.is_top, new.tags)
            right = new.hits[leads]
            scores_by_map = (new.scores[leads], adapted_scores[leads], from_nothing(train, test))
            losses.append([float(log_loss(scores, right) or 0.0) for scores in scores_by_map])
        old_loss, new_loss, fit_loss = np.array(losses).T
        rows.append(
            {
                "source": source, "labelled": size, "before": float(old_loss.mean()), "after": float(new_loss.mean()),
                "from_nothing": float(fit_loss.mean()), "worse": int((new_loss > old_loss + WORSE).sum()), "draws": DRAWS,
            }
        )  # fmt: skip
    return rows


def of_entities(name: str, source: Judged, table: Mapping[str, float], event: str) -> list[dict[str, Any]]:
    """Adapting a map of entities that did not see this source. table: Its coefficients."""
    spans, raw, right = source.evidence.spans, source.raw[source.chosen], source.right(event)
    leads, groups = np.ones(len(right), dtype=bool), Groups(source.labels, np.arange(len(source.labels)))
    entries = GoldEntries(source.score(table), right, leads, spans.labels, source.documents[source.chosen])

    def from_nothing(train: Ints, test: Ints) -> Floats:
        return SpanRecalibrator(groups).fit(spans.take(train), right[train]).predict(spans.take(test), raw[test])

    return study(name, entries, groups, PRETRAINED_SPAN_PRIOR, ENTITIES, np.ones(len(entries)), from_nothing)


def first_of_documents(entries: GoldEntries) -> Floats:
    """1 for the first entry of each document, else 0."""
    first = np.zeros(len(entries))
    first[np.unique(entries.documents, return_index=True)[1]] = 1.0
    return first


def of_tags(name: str, source: JudgedTags) -> list[dict[str, Any]]:
    """Adapting a calibration of tags that did not see this source; the fit from nothing is a Platt map of all pairs."""
    entries = source.entries

    def from_nothing(train: Ints, test: Ints) -> Floats:
        leads = test[entries.is_top[test]]
        return Platt().fit(source.raw[train], entries.hits[train]).predict(source.raw[leads])

    return study(name, entries, source.groups, PRETRAINED_TOKEN_PRIOR, DOCUMENTS, first_of_documents(entries), from_nothing)


def cost(model: str, cache: Path, rounds: int = 9) -> dict[str, Any]:
    """Processor time per token of EWT test: a pipeline with its cards, one with fits of the same components, and without both.

    The fits are those of `calib fit` on EWT dev. All three recognizers keep their probabilities. The pipelines run in turns.
    """
    pipelines = {
        "pretrained": spacy_calib.pretrained(model),
        "fit": _fit_on_ewt(model, cache),
        "without": spacy_calib.pretrained(model),
    }
    for name in ("calib", "calib_ent"):
        pipelines["without"].disable_pipe(name)
    texts = ewt_texts(cache)
    seconds: dict[str, list[float]] = {name: [] for name in pipelines}
    for turn in range(rounds + 1):
        for name, nlp in pipelines.items():
            begin = time.process_time()
            n_tokens = sum(len(doc) for doc in nlp.pipe(texts))
            if turn:  # the first one warms up
                seconds[name].append(time.process_time() - begin)
    times = {name: np.array(values) for name, values in seconds.items()}
    ratios = times["pretrained"] / times["fit"]
    extra = {name: np.median(values - times["without"]) for name, values in times.items()}
    return {
        "tokens": n_tokens, "rounds": rounds, "ratio": float(np.median(ratios)), "ratios": [float(ratios.min()), float(ratios.max())],
        "microseconds": {name: 1e6 * float(np.median(values)) / n_tokens for name, values in times.items()},
        "calibration": {name: 1e6 * float(extra[name]) / n_tokens for name in ("pretrained", "fit")},
    }  # fmt: skip


def _fit_on_ewt(model: str, cache: Path) -> Any:
    """The pipeline with what `calib fit` learns of its entities and tags on EWT dev."""
    vocab = spacy.blank("en").vocab
    with tempfile.TemporaryDirectory() as folder:
        gold, table, *outputs = (Path(folder) / name for name in ("gold.spacy", "map.json", "entities", "both"))
        documents = uner("uner_english_ewt", "dev")
        DocBin(docs=[doc for _, doc in make_docs(documents, vocab, 10**6)]).to_disk(gold)
        table.write_text(json.dumps(TO_THREE), encoding="utf8")
        spacy_calib.fit(model, gold, outputs[0], component="ner", label_map=str(table))
        spacy_calib.fit(outputs[0], ewt_file("dev", cache), outputs[1], component="tagger")
        return spacy.load(outputs[1])
