"""The contents of one view (tokens or entities of a pipe) on the report page, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ...metrics.by_document import error_interval, mean_interval, resample_means
from ...metrics.calibration_errors import group_slices
from ...metrics.judged_view import JudgedView, predicted_indices
from ...metrics.metric import losses, title_of
from ...metrics.proper import decompose
from ...pairs.bins import make_binner
from ...pairs.documents import by_unit, count_in_words
from ...pairs.pairing import top_pairs
from ...types import Floats, Ints
from .passages import describe_pair
from .plot_data import picture_rows
from .tag_rows import tag_rows, worst_tags
from .verdict import noun_of, verdict

if TYPE_CHECKING:
    from ...pairs.scored_corpus import ScoredCorpus

MAX_ERRORS = 20
MAX_OF_KIND = 3  # maximum number of errors with the same predicted and gold label
TAGS = ("tag", "pos", "morph")  # annotations whose labels are called tags
_KINDS = ("raw", "calibrated")
TABLE = ("tokens", "pairs", "accuracy", "by", "errors", "scores", "change")  # keys of `metrics.table.calibration_table`


def view_contents(
    corpus: ScoredCorpus, view: JudgedView, results: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all that the page shows of the tokens, or the entities, of one calib pipe.

    corpus (ScoredCorpus): All scored tokens. view (JudgedView): The scores of the tokens, or entities, with gold; not empty.
    results (Mapping): Their evaluation: keys of TABLE, "never_right", and perhaps "slices".
    facts (Mapping): "layer" (annotation), "weights_changed", "seen" (overlap with the fit data or None), and others to show.
    RETURNS (dict): The facts; and words: "unit" ("tokens", "documents" or "entities"), "called" (a span's singular and plural),
    "noun" ("tag" or "label"), "counted" ("12 documents"), "by" (what intervals resample); the numbers "bins", "documents"; and
    results: "verdict", "never_right", "accuracy" of the top labels, "table", "figures", "pictures", "groups", "tags", "worst"
    (tags), "decomposition" of the Brier score, "errors" (the most confident), "slices". `pipe_contents` sets "conventions".
    """
    table, never_right = {key: results[key] for key in TABLE}, results["never_right"]
    n_documents = len(np.unique(view.documents))
    right, documents = _unit_hits(corpus, view)
    low, high = _bounds(mean_interval(right, documents, seed=view.seed))
    # An entity has one label, so its curve of top labels is that of all.
    picture_names = ("reliability", *(() if view.kind == "entities" else ("top",)), "groups", "coverage")
    scores = {"raw": view.pairs.scores, "calibrated": view.calibrated}
    brier_parts = {kind: decompose(scores[kind], view.pairs.hits, make_binner(view.n_bins)) for kind in _KINDS}
    return {
        **facts,
        "unit": view.kind,
        "called": view.span_words,
        "noun": "tag" if facts["layer"] in TAGS else "label",
        "bins": view.n_bins,
        "documents": n_documents,
        "counted": count_in_words(view.unit, n_documents),
        "by": by_unit(view.unit, n_documents),
        "verdict": verdict(view, table, noun_of(facts["layer"]), facts["seen"], never_right),
        "never_right": never_right,
        "accuracy": {"value": table["accuracy"], "low": low, "high": high},
        "table": table,
        "figures": figures(view, table),
        "pictures": {name: picture_rows(name, view, table["errors"]) for name in picture_names},
        "groups": group_rows(view, table["errors"][1:-1]),  # without the rows of all pairs and of the mean
        "tags": tag_rows(corpus, view),
        "worst": worst_tags(corpus, view),
        "decomposition": {
            kind: None if part is None else {**asdict(part), "brier": part.brier} for kind, part in brier_parts.items()
        },
        "errors": confident_errors(corpus, view),
        "slices": results.get("slices"),
        "conventions": {"rows": [], "map": ""},
    }


def _bounds(interval: Any) -> tuple[float | None, float | None]:
    """Return (low, high) of an interval; None for both without one."""
    return (None, None) if interval is None else (interval.low, interval.high)


def _unit_hits(corpus: ScoredCorpus, view: JudgedView) -> tuple[Floats, Ints]:
    """Return (whether the top label is right, 1.0 or 0.0; number of its document) for each token or entity of a view."""
    pairs = view.pairs
    if view.kind == "entities":  # each has one pair
        return pairs.hits.astype(np.float64), view.documents
    tokens, token_of_pair = np.unique(pairs.rows, return_inverse=True)  # token_of_pair: index in `tokens`
    top = top_pairs(pairs)  # index of each token's pair with the highest score
    right = np.zeros(len(tokens))
    right[token_of_pair[top]] = pairs.hits[top]
    return right, corpus.documents[tokens]


def figures(view: JudgedView, table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of figures: the errors SMCE, mean GMCE and ECE, then all metrics. table: `calibration_table` of the view.

    RETURNS (list[dict]): The keys of each row; a value is None if unknown:
        name, title: Of the error or metric. raw, calibrated: Its value by the raw and the calibrated scores.
        raw_low, raw_high, calibrated_low, calibrated_high: 95 % intervals by document; for an error, without its noise part.
        debiased: The calibrated error without the part that is noise.
        floor, floor95: Mean and 95 % quantile of the error of perfectly calibrated scores.
    """
    pairs, n_bins, seed = view.pairs, view.n_bins, view.seed
    all_pairs, *_, mean_of_groups = table["errors"]
    smce_interval = error_interval(pairs.scores, pairs.hits, view.documents, n_bins, seed=seed)
    group_of_pair = view.groups.find(pairs.tags)
    gmce_interval = error_interval(pairs.scores, pairs.hits, view.documents, n_bins, seed=seed, groups=group_of_pair)
    return [
        _figure("smce", "SMCE", all_pairs, smce_interval),
        _figure("gmce", "Mean GMCE", mean_of_groups, gmce_interval),
        _figure("ece", "ECE (top label)", table["scores"]["ece"]),
        *_metric_figures(view, table["scores"]),
    ]


def _figure(name: str, title: str, row: Mapping[str, Any], raw_interval: Any = None, interval: Any = None) -> dict[str, Any]:
    """Return a row of `figures` from a row of a table. interval: Of the calibrated value; None takes the row's own, if any."""
    raw_low, raw_high = _bounds(raw_interval)
    low, high = (row.get("true_low"), row.get("true_high")) if interval is None else _bounds(interval)
    values = {key: row.get(key) for key in (*_KINDS, "floor", "floor95", "debiased")}
    intervals = {"raw_low": raw_low, "raw_high": raw_high, "calibrated_low": low, "calibrated_high": high}
    return {"name": name, "title": title, **values, **intervals}


def _metric_figures(view: JudgedView, scores: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of `figures` for the metrics: first mean losses, with intervals. scores (dict): Metric -> its values."""
    pair_losses = losses(view.metrics)  # metrics that are means over the pairs
    raw_and_calibrated = (view.pairs.scores, view.calibrated)
    columns = [loss(values, view.pairs.hits) for loss in pair_losses.values() for values in raw_and_calibrated]  # 2 per metric
    intervals = [mean.interval() for mean in resample_means(columns, view.documents, seed=view.seed)] if columns else []
    titles = {name: title_of(metric, name) for name, metric in view.metrics.items()}
    rows = [
        _figure(name, titles[name], scores[name], raw_interval, interval)
        for name, raw_interval, interval in zip(pair_losses, intervals[::2], intervals[1::2], strict=True)
    ]
    return rows + [_figure(name, titles[name], scores[name]) for name in titles if name not in pair_losses]


def group_rows(view: JudgedView, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the table of the view's tag groups, with errors and intervals, as Table 1 of Kranzlein et al. (2021).

    rows (list): A group's row of the table of errors, for each group. RETURNS (list[dict]): The rows with "names" of the tags,
    "least", "most" (gold frequency of a tag), "share" of all gold labels, "units" (tokens with a score of these tags),
    "raw_low", "raw_high" (95 % interval of the raw error), "change" (of the error by calibration, -0.5 for half).
    """
    extended_rows = []
    for index, (row, pair_index) in enumerate(zip(rows, group_slices(view.pairs, view.groups), strict=True)):
        raw, hits = view.pairs.scores[pair_index], view.pairs.hits[pair_index]
        low, high = _bounds(error_interval(raw, hits, view.documents[pair_index], view.n_bins, seed=view.seed))
        change = row["calibrated"] / row["raw"] - 1 if row["raw"] else None
        counts = {"units": len(np.unique(view.pairs.rows[pair_index])), "raw_low": low, "raw_high": high, "change": change}
        extended_rows.append({**row, **_frequencies(view, index), **counts})
    return extended_rows


def _frequencies(view: JudgedView, group: int) -> dict[str, Any]:
    """Return "names" of a group's tags, their "least" and "most" frequency, and "share" of gold labels. group: Its number."""
    tags, counts = view.groups.tags_in(group), view.groups.counts
    total = int(counts.sum())
    tag_counts = counts[tags]
    return {
        "names": [view.labels[tag] for tag in tags.tolist()],
        "least": int(tag_counts.min()) if len(tags) and total else None,
        "most": int(tag_counts.max()) if len(tags) and total else None,
        "share": float(tag_counts.sum() / total) if total else None,
    }


def confident_errors(corpus: ScoredCorpus, view: JudgedView) -> list[dict[str, Any]]:
    """Describe up to MAX_ERRORS wrong predictions of a view, highest score first; up to MAX_OF_KIND per (label, gold label)."""
    predicted_pairs = predicted_indices(corpus, view)
    wrong = predicted_pairs[~view.pairs.hits[predicted_pairs]]
    order = wrong[np.argsort(-view.calibrated[wrong], kind="stable")]
    errors: list[dict[str, Any]] = []
    n_by_kind: dict[tuple[str, str], int] = {}
    for pair in order.tolist():
        error = describe_pair(corpus, view, pair)
        kind = (error["carried"], error["gold"])
        if n_by_kind.get(kind, 0) < MAX_OF_KIND and error not in errors:
            n_by_kind[kind] = n_by_kind.get(kind, 0) + 1
            errors.append(error)
        if len(errors) == MAX_ERRORS:
            break
    return errors
