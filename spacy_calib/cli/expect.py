"""`spacy calib expect`: how good a pipeline is on texts without gold, and whether that number can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import calib_error
from ._common import FORMATS, check_format, check_option, check_output, deliver, number, user_errors
from ._scoring import DATA_HELP, open_pipeline, score, stream_examples, text_files

if TYPE_CHECKING:
    from spacy.training import Example

    from ..drift import Labelled
    from ..expect import EntityModel, Estimate
    from ..fit_record import FitRecord
    from ..layers import Layer
    from ..scored import ScoredCorpus

_SHOWN = 40
_FIRST_WORDS = 6
NO_RECORD = (
    "The pipe holds no record of the documents it was fitted on (an older spacy-calib fitted it, or it had a single document): "
    "there is neither an interval nor a drift check; run `spacy calib fit` again, on two documents or more."
)


def expect_cli(
    # fmt: off
    model: str = typer.Argument(..., help="Calibrated pipeline: package name or path"),
    texts: Path = typer.Argument(..., help=DATA_HELP),
    attr: str = typer.Option(None, "--attr", help="The calib pipe with this prefix; else the first"),
    confidence: float = typer.Option(0.95, "--confidence", help="How often an interval holds the true value"),
    per_doc: bool = typer.Option(False, "--per-doc", help="The expected accuracy of every document too"),
    check: bool = typer.Option(False, "--check", help="Compare with the gold in TEXTS"),
    seed: int = typer.Option(0, "--seed", help="Seed of the draws that show what chance makes"),
    output: Path = typer.Option(None, "--output", "-o", help="JSON file for the result"),
    format: str = typer.Option("table", "--format", help=f"What is printed: {' or '.join(FORMATS)}"),
    gold_preproc: bool = typer.Option(False, "--gold-preproc", help="Use gold sentences and tokens"),
    n_process: int = typer.Option(1, "--n-process", help="Worker processes"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU ID or -1 for CPU"),
    code: Path = typer.Option(None, "--code", help="Python file with registered functions"),
    silent: bool = typer.Option(False, "--silent", help="Print nothing but errors"),
    # fmt: on
) -> None:
    """
    Tell the accuracy (and precision, recall and F of entities) to be expected on
    texts without gold, with an interval, and whether the texts are like those
    the pipe was fitted on: where they are not, the numbers cannot be trusted.
    """
    with user_errors():
        expect(
            model, texts, attr=attr, confidence=confidence, per_doc=per_doc, check=check, seed=seed, output=output, format=format,
            gold_preproc=gold_preproc, n_process=n_process, gpu_id=gpu_id, code=code, silent=silent,
        )  # fmt: skip


def expect(
    model: str,
    texts: Path,
    *,
    attr: str | None = None,
    confidence: float = 0.95,
    per_doc: bool = False,
    check: bool = False,
    seed: int = 0,
    output: Path | None = None,
    format: str = "table",
    gold_preproc: bool = False,
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    silent: bool = True,
) -> dict[str, Any]:
    """What the command does.

    RETURNS (dict): "pipe", "component", "layer", "documents", "tokens", "confidence", "trusted", and what `expectations` gives; on
        request "per_doc" and "true", see `documents_of` and `true_values`, with the numbers of `checked_documents`.
    RAISES C030: there is no gold to check against. CalibError: every other fault of the input.
    """
    check_option("--confidence", 0 < confidence < 1, "between 0 and 1", confidence)
    check_option("--seed", seed >= 0, "at least 0", seed)
    check_format(format)
    text_files(texts)
    check_output(output, texts)
    nlp, pipe = open_pipeline(model, attr, code=code, gpu_id=gpu_id)
    from ..layers import get_layer

    layer = get_layer(pipe.fit_info["layer"])
    gold: list[int] = []
    examples = _counting(stream_examples(nlp, texts, gold_preproc=gold_preproc), layer, gold)
    corpus = score(nlp, pipe, examples, n_process=n_process, silent=silent)
    if check and not corpus.has_gold:
        raise calib_error("C030", layer=layer.name, component=pipe.source.component)
    result = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": layer.name,
        "documents": corpus.n_docs,
        "tokens": int(corpus.counted.sum()),
        "confidence": confidence,
        **expectations(tokens_of(corpus, pipe.source_labels()), spans_of(corpus), pipe.record, pipe.event, confidence, seed),
    }
    if check:
        result |= checked_documents(corpus)
        result["true"] = true_values(corpus, sum(gold), result)
    if per_doc:
        result["per_doc"] = documents_of(corpus, pipe.record, confidence, check)
    deliver(result, lambda: show(result), output=output, format=format, silent=silent)
    return result


def _counting(examples: Iterable[Example], layer: Layer, counts: list[int]) -> Iterator[Example]:
    """The examples; the number of gold spans of each is put into `counts`."""
    for example in examples:
        counts.append(len(layer.spans_on(example.reference)))
        yield example


def tokens_of(corpus: ScoredCorpus, labels: Sequence[str]) -> Labelled:
    """The counted tokens. labels (Sequence[str]): Of the source: an edit tree is what the fit saw, not the lemma that it gives."""
    import numpy as np

    from ..drift import Labelled

    counted = np.flatnonzero(corpus.counted)
    own = np.flatnonzero(corpus.tags == corpus.labels[corpus.rows])
    own = own[np.argsort(corpus.tag_raw[own], kind="stable")]  # of trees that give one lemma the likeliest
    columns = np.full(len(corpus), -1)
    columns[corpus.rows[own]] = corpus.columns[own]
    pairs = zip(columns[counted].tolist(), corpus.labels[counted].tolist(), strict=True)
    named = [labels[column] if column >= 0 else corpus.names[label] for column, label in pairs]
    return Labelled(corpus.docs[counted], corpus.n_docs, named, corpus.raw[counted], corpus.calibrated[counted])


def spans_of(corpus: ScoredCorpus) -> Labelled:
    """The entities."""
    from ..drift import Labelled

    return Labelled(corpus.spans.docs, corpus.n_docs, None, corpus.spans.raw, corpus.spans.calibrated)


def expectations(
    tokens: Labelled, spans: Labelled, record: FitRecord | None, event: str, confidence: float = 0.95, seed: int = 0
) -> dict[str, Any]:
    """What is to be expected, and whether to trust it.

    event (str): When an entity counts as right. RETURNS (dict): "accuracy": {"expected", "low", "high"}, with the mean of the calibrated scores and the accuracy of the fit data;
        "entities": the numbers and the same for "precision", "recall" and "f" (None for a source without entities; without recall and F
        for an event other than exact); "drift": "verdict" and "checks"; "trusted": whether the verdict is that the texts are like the fit
        data. Without a record of the fit "low", "high" and "drift" are None, and so is "entities".
    """
    from ..expect import expected_accuracy, token_sums

    mean = float(tokens.calibrated.mean())
    if record is None:
        accuracy = {"expected": mean, "low": None, "high": None, "mean_score": mean, "fit": None}
        return {"accuracy": accuracy, "entities": None, "drift": None, "trusted": False}
    sums = token_sums(tokens.calibrated, tokens.documents, tokens.n_docs)
    estimate = expected_accuracy(record.tokens, sums, confidence)
    drift = record.profile.compare(tokens, None if record.entities is None else spans, seed)
    return {
        "accuracy": {**estimate._asdict(), "mean_score": mean, "fit": record.accuracy},
        "entities": None if record.entities is None else _entities(record.entities, tokens, spans, event, confidence),
        "drift": {
            "verdict": drift.verdict,
            "checks": [{**asdict(one), "differs": one.differs} for one in drift.checks],
        },
        "trusted": drift.trusted,
    }


def _entities(model: EntityModel, tokens: Labelled, spans: Labelled, event: str, confidence: float) -> dict[str, Any]:
    from ..expect import expected_entities
    from ..fit_record import entity_sums

    found = expected_entities(model, entity_sums(tokens, spans), confidence)
    exact = event == "exact"  # otherwise one gold entity may make several right
    return {
        "event": event,
        "predicted": found.predicted,
        "right": found.right,
        "gold": found.gold if exact else None,
        "precision": _plain(found.precision),
        "recall": _plain(found.recall if exact else None),
        "f": _plain(found.f if exact else None),
    }


def _plain(estimate: Estimate | None) -> dict[str, float] | None:
    return None if estimate is None else estimate._asdict()


def true_values(corpus: ScoredCorpus, gold: int, result: dict[str, Any]) -> dict[str, Any]:
    """The true values, and whether the intervals hold them: None where some documents have no gold, which the intervals are of too.

    gold (int): Gold entities. result (dict): What is expected, and `checked_documents`. RETURNS (dict): "accuracy", "precision", "recall", "f": {"value", "inside"} each, left out where there is none.
    """
    known = corpus.counted & (corpus.right >= 0)
    judged = corpus.right[known]
    spans = corpus.spans.right[corpus.spans.right >= 0]
    right, predicted = int((spans == 1).sum()), len(spans)
    whole = result["checked"] == result["checkable"]
    true = {
        "accuracy": _share(int((judged == 1).sum()), len(judged)),
        "precision": _share(right, predicted),
        "recall": _share(right, gold),
        "f": _share(2 * right, predicted + gold),
    }
    expected = {"accuracy": result["accuracy"], **(result["entities"] or {})}
    return {
        name: {"value": value, "inside": _inside(value, expected[name]) if whole else None}
        for name, value in true.items()
        if value is not None and expected.get(name) is not None
    }


def checked_documents(corpus: ScoredCorpus) -> dict[str, int]:
    """ "checkable": documents with scores; "checked": those of them with gold."""
    import numpy as np

    counted = corpus.counted
    return {
        "checkable": len(np.unique(corpus.docs[counted])),
        "checked": len(np.unique(corpus.docs[counted & (corpus.right >= 0)])),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _inside(value: float, estimate: dict[str, Any]) -> bool | None:
    return None if estimate["low"] is None else estimate["low"] <= value <= estimate["high"]


def documents_of(corpus: ScoredCorpus, record: FitRecord | None, confidence: float, check: bool) -> list[dict[str, Any]]:
    """Each document with tokens: "doc" (its number, from 0), "text" (first words), "tokens", "expected", "low" and "high" (None without a
    record), "true" (accuracy; None without gold, or where it is not to be checked).
    """
    import numpy as np

    from ..expect import Sums, expected_accuracy, token_sums

    sums = token_sums(corpus.calibrated[corpus.counted], corpus.docs[corpus.counted], corpus.n_docs)
    known = corpus.counted & (corpus.right >= 0)
    n_known, n_right = (np.bincount(corpus.docs[own], minlength=corpus.n_docs) for own in (known, known & (corpus.right == 1)))
    rows = []
    for doc in np.flatnonzero(sums.units > 0).tolist():
        own = Sums(sums.expected[doc : doc + 1], sums.independent[doc : doc + 1], sums.units[doc : doc + 1])
        mean: dict[str, Any] = {"expected": float(own.expected.sum() / own.units.sum()), "low": None, "high": None}
        first, last = int(corpus.doc_starts[doc]), int(corpus.doc_starts[doc + 1])
        rows.append(
            {
                "doc": doc,
                "text": " ".join(corpus.text(first, min(last, first + _FIRST_WORDS)).split()),
                "tokens": int(own.units[0]),
                **(mean if record is None else expected_accuracy(record.tokens, own, confidence)._asdict()),
                "true": _share(int(n_right[doc]), int(n_known[doc])) if check else None,
            }
        )
    return rows


# Printing


def show(result: dict[str, Any]) -> None:
    """Print what is to be expected, the documents, and the verdict."""
    from wasabi import msg

    msg.divider(f"Expected quality of {result['component'] or 'the source'} ({result['layer']})")
    msg.text(f"{result['documents']:,} documents, {result['tokens']:,} tokens")
    show_estimates(result)
    if "per_doc" in result:
        show_documents(result["per_doc"], result["confidence"])
    if result["drift"] is None:
        msg.warn(NO_RECORD)
    else:
        show_drift(result["drift"])


def show_estimates(result: dict[str, Any]) -> None:
    """Print the table of shares."""
    from wasabi import msg

    entities = result["entities"] or {}
    given = {"accuracy": result["accuracy"], **{name: entities.get(name) for name in ("precision", "recall", "f")}}
    true = result.get("true", {})
    rows = [
        (
            f"{'F' if name == 'f' else name.capitalize()}{'' if name == 'accuracy' else ' of entities'}",
            _percent(one["expected"]),
            _range(one),
            *((_percent(true[name]["value"]), _INSIDE[true[name]["inside"]]) if name in true else ("-", "-") if true else ()),
        )
        for name, one in given.items()
        if one is not None
    ]
    header = ("", "Expected", f"{100 * result['confidence']:g} % interval", *(("True", "Inside") if true else ()))
    msg.table(rows, header=header, divider=True, aligns=("l", *"r" * (len(header) - 1)))
    if true and result["checked"] < result["checkable"]:
        msg.text(
            f"The true values are of {result['checked']:,} of the {result['checkable']:,} documents with scores, those with gold."
        )
    accuracy = result["accuracy"]
    if accuracy["low"] is not None:
        msg.text(
            f"Accuracy: the mean score is {_percent(accuracy['mean_score'])}; held-out scores of the fit data were off by "
            f"{100 * (accuracy['mean_score'] - accuracy['expected']):+.2f}, which is taken off."
        )
    if entities and entities["gold"] is not None:
        msg.text(
            f"To be expected: {entities['right']:,.0f} of the {entities['predicted']:,} entities found are right, and "
            f"{entities['gold']:,.0f} should have been found."
        )


_INSIDE = {True: "yes", False: "NO", None: "-"}


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{number(100 * share, 2)} %"


def _range(estimate: dict[str, Any]) -> str:
    return "-" if estimate["low"] is None else f"{number(100 * estimate['low'], 2)} to {number(100 * estimate['high'], 2)}"


def show_documents(documents: list[dict[str, Any]], confidence: float) -> None:
    """Print the documents that are expected to be worst."""
    from wasabi import msg

    msg.divider("Documents, the worst to be expected first")
    worst = sorted(documents, key=lambda one: one["expected"])[:_SHOWN]
    true = any(one["true"] is not None for one in worst)
    rows = [
        (
            one["doc"],
            f"{one['tokens']:,}",
            _percent(one["expected"]),
            _range(one),
            *((_percent(one["true"]),) if true else ()),
            one["text"],
        )
        for one in worst
    ]
    header = ("Doc", "Tokens", "Expected", f"{100 * confidence:g} % interval", *(("True",) if true else ()), "Begins")
    msg.table(rows, header=header, divider=True, aligns=(*"r" * (len(header) - 1), "l"))
    if len(documents) > len(worst):
        msg.text(f"{len(documents) - len(worst):,} more: see --output or --format json")


def show_drift(drift: dict[str, Any]) -> None:
    """Print the comparison with the fit data, and what follows."""
    from wasabi import msg

    from ..drift import DIFFERENT, LIKE

    msg.divider("Are these texts like the fit data?")
    rows = [
        (one["name"], number(one["value"]), number(one["limit"]), number(one["chance"]), "DIFFERS" if one["differs"] else "")
        for one in drift["checks"]
    ]
    header = ("Difference of", "Found", "Matters from", "By chance up to", "")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r", "l"))
    if drift["verdict"] == LIKE:
        msg.good("Like the fit data: no difference is large enough to matter. The intervals hold for such texts.")
    elif drift["verdict"] == DIFFERENT:
        named = ", ".join(one["name"] for one in drift["checks"] if one["differs"])
        msg.warn(
            f"Differs from the fit data ({named}): DO NOT TRUST the expected values. On texts of another kind they are most often too high, "
            "and the intervals do not hold. Fit the pipe again on gold of this kind."
        )
    else:
        msg.warn(
            "Too few texts to tell: as few texts of the fit data differ so much by chance alone that a difference which matters could not be "
            "seen. The intervals hold if the texts are of the same kind; give more documents to know."
        )
