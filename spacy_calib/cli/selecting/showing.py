"""The batch -> the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..shared.screen import msg, shorten

N_SHOWN, TEXT_WIDTH = 20, 60
SCORE_MEANS = {
    "least-confident": "how likely its most doubtful label is wrong",
    "expected-errors": "wrong labels to be expected",
    "margin": "how much likelier the best other label is than the one it has (mostly below 0: less likely), as a mean of its words",
    "entropy": "entropy of the labels, as a mean of its words",
    "rare-tag": "how likely it holds such a tag",
    "random": "place in a random order",
    "spread": "wrong labels to be expected",
}


def show_batch(result: dict[str, Any], output: Path | None) -> None:
    """Print the first rows, and what the batch is in all."""
    adapts = result["for"] == "adapt"
    how = "to adapt to, spread over their doubt" if adapts else f"to label, by {result['by']}"
    msg.divider(f"{result['unit'].capitalize()}s {how} ({result['signal']} scores)")
    if result["tags"]:
        msg.text(f"Tags hunted: {', '.join(result['tags'])}")
    rows = [_table_row(row) for row in result["rows"][:N_SHOWN]]
    header = ("Rank", "Doc", "Sent", "Score", "Words", "Because of", "Text")
    msg.table(rows, header=header, divider=True, aligns=(*"rrrrr", *"ll"), max_col=2 * TEXT_WIDTH)
    msg.text(f"Score: {SCORE_MEANS[result['by']]}{', divided by the words' if result['per_word'] else ''}.")
    batch, pool = result["batch"], result["pool"]
    of_documents = any(row["reason"]["word"] is None for row in result["rows"])
    if adapts:
        msg.text(
            f"Sorted by their score, the documents were cut into {batch['units']:,} equal parts, and one was drawn at random from each (the shortest ones, "
            "a tenth of the words, were left out): they stand for all, as `adapt` and `expect --gold` need it. They are in random order: the first few "
            "stand for all, too. Label them whole."
        )
    if batch["units"] > N_SHOWN:
        msg.text(f"... and {batch['units'] - N_SHOWN:,} more; --output writes them all.")
    for name, part in (("Batch", batch), ("Pool", pool)):
        share = 100 * part["expected_errors"] / max(1, part["units" if of_documents else "words"])
        msg.text(
            f"{name}: {part['units']:,} {result['unit']}s of {part['docs']:,} documents, {part['words']:,} words, "
            f"{part['expected_errors']:,.1f} wrong labels expected ({share:.1f}\u00a0%)."
        )
    if result["excluded"] is not None:
        msg.text(f"{result['excluded']:,} {result['unit']}s of the pool are labelled already.")
    if output is not None:
        msg.good(f"The batch: {output}")


def _table_row(row: dict[str, Any]) -> tuple[str, ...]:
    reason = row["reason"]
    tags = [(reason["tag"], reason["probability"]), *list(reason["alternatives"].items())[:2]]
    word = "" if reason["word"] is None else f"{shorten(reason['word'], 20)}: "
    because = word + " · ".join(f"{tag} {probability:.2f}" for tag, probability in tags)
    sentence = "-" if row["sentence"] is None else str(row["sentence"])
    return (
        str(row["rank"]),
        str(row["doc"]),
        sentence,
        f"{row['score']:.4f}",
        f"{row['words']:,}",
        because,
        shorten(row["text"], TEXT_WIDTH),
    )
