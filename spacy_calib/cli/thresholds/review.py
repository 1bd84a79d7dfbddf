"""Accept, look, drop: what is left for people to look at between a cut-off that reaches a precision and one that bounds misses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..shared.screen import msg, number, print_table

if TYPE_CHECKING:
    from ...calibration.cutoffs import Cutoffs, RecallCutoffs
    from ...corpus.missed import EntityTokens
    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator


def find_review(
    pipe: Calibrator, corpus: ScoredCorpus, tokens: EntityTokens, accepting: Cutoffs, flagging: RecallCutoffs
) -> dict[str, Any]:
    """The three parts of the corpus, see `corpus.missed.review_of`; and of what is accepted, the "entities" with gold, and how many are "right"."""
    import numpy as np

    from ...corpus.missed import review_of

    labels, spans = pipe.lookup.span_labels(), corpus.spans
    assert pipe.spans.groups is not None
    column = {label: i for i, label in enumerate(labels)}
    columns = np.array([column.get(name, -1) for name in corpus.names], dtype=np.intp)[spans.labels]
    kept = np.flatnonzero(accepting.accepts(spans.calibrated, columns, labels, pipe.spans.groups))
    accepted, first = np.zeros(len(corpus), dtype=bool), corpus.doc_starts[spans.docs[kept]]
    for start, end in zip((first + spans.starts[kept]).tolist(), (first + spans.ends[kept]).tolist(), strict=True):
        accepted[start:end] = True
    flagged = np.any(list(tokens.flagged(flagging).values()), axis=0)
    parts: dict[str, Any] = review_of(tokens, flagged, accepted)
    judged = spans.right[kept][spans.right[kept] >= 0]
    parts["accept"] |= {"entities": len(judged), "right": int(judged.sum())}
    return parts


def show_review(parts: dict[str, Any], precision: float, recall: float, confidence: float) -> None:
    """Print the three parts."""
    msg.divider("Accept, look, drop")
    accept, look, drop = (parts[name] for name in ("accept", "look", "drop"))
    right = accept["right"] / accept["entities"] if accept["entities"] else None
    outside = None if drop["inside_share"] is None else 1 - drop["inside_share"]
    rows = [
        ("accept", *_figures(accept), "of the entities are right", number(right)),
        ("look", *_figures(look), "of the tokens are in an entity", number(look["inside_share"])),
        ("drop", *_figures(drop), "of the tokens are in none", number(outside)),
    ]
    print_table(rows, ("Part", "Tokens", "% of tokens", "What", "Share"), ("l", "r", "r", "l", "r"))
    both = max(0.0, 1 - 2 * (1 - confidence))
    msg.text(
        "Accepted: the tokens of entities at or above their cut-off. Looked at: the flagged tokens of the rest. Dropped unseen: all others. "
        f"The precision of {100 * precision:g} % and the recall of {100 * recall:g} % are each promised by themselves, with {100 * confidence:g} % confidence; "
        f"both hold together with {100 * both:g} % at least."
    )


def _figures(part: dict[str, Any]) -> tuple[str, str]:
    return f"{part['tokens']:,}", number(None if part["share"] is None else 100 * part["share"], 1)
