"""The page of all cards, with one table for each; and all tables of one card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacy_calib.plugins.pretrained.card import Card, lowest_cutoff

_HEAD = """# Cards

<!-- written by scripts/pretrained.py --page; not by hand -->

A card is a pretrained calibration of one component of a stock pipeline. With it you get calibrated scores [without gold of your own](../start/scores-without-gold.md). List the cards, and use one:

<!-- not run: shown in Scores without gold -->

```bash
python -m spacy calib pretrained --list
python -m spacy calib pretrained en_core_web_sm ./calibrated
```

Each table row is one source, with raw / calibrated figures. The fit for a row used no texts and no gold of its source. Lower is better. *Bias* is the mean score minus the share that is right: above 0, scores are too high. *n* is the number of predictions. *Log loss* and *ECE* are [metrics](../how-it-works.md#metrics). "Other source" means that the source was not used to choose the method either. "Older release" means that the pipeline was trained on an older release of the source.

The code is MIT; each card has the licence that its sources ask for. `python scripts/pretrained.py --tables CARD` prints all tables of a card: exact spans, cut-offs, texts in capitals or without capitals, names by origin, labels, and what `calib adapt` adds.
"""


def page(cards: Sequence[Mapping[str, Any]]) -> str:
    """The page. cards: All cards."""
    return "\n".join([_HEAD, *(_section(card) for card in cards)]).rstrip()


def _section(card: Mapping[str, Any]) -> str:
    lines = [f"## {card['name']}", ""]
    lines += [
        f"- `{card['component']}` of {card['pipeline']}, prefix `{card['settings']['attr']}`. Licence {card['licence']}. Made on {card['date']} by `{card['command']}`.",
        f"- Counted as right: {card['event']}",
        f"- Fitted on {_sources(card)}. Each source weighs the same.",
        f"- No gold, so no score: {_some_names(card['without_gold'])}. Raw scores were better and are kept: {_some_names(card['failing'])}.",
        f"- {Card(Path(), card).expected_bias_words}",
    ]
    if card["cutoffs"]:
        cutoff = Card(Path(), card).choose_cutoff(None) or {}
        lines.append(
            f"- Default cut-off `Span._.{card['settings']['attr']}_accept`: {card['cutoffs']['cutoff']:.2f}. On the sources left out, the mean precision is {cutoff['mean']:.2f}, "
            f"the lowest {cutoff['worst']:.2f}, and {cutoff['kept']:.2f} of the right entities are kept."
        )
    if card.get("fairness"):
        low, high = (choose(card["fairness"], key=lambda row: row["score"]) for choose in (min, max))
        lines.append(
            f"- Mean score of persons that are right, by the origin and shape of their names: from {low['score']:.2f} ({low['name']}, {low['shape']}) to {high['score']:.2f} ({high['name']}, {high['shape']})."
        )
    return "\n".join([*lines, "", *_left_out(card), ""])


def _left_out(card: Mapping[str, Any]) -> list[str]:
    """The table of a card: the sources left out, their mean, and further sources."""
    lines = ["| source | n | log loss | ECE | bias |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [_source_row(row, row["source"]) for row in card["left_out"]]
    lines.append(f"| mean | | {_means(card['left_out'], 'log_loss', 'ece')} | |")
    for key, words in (("trained_on", "older release"), ("further", "other source")):
        lines += [_source_row(row, f"{row['source']} ({words})") for row in card.get(key) or ()]
    return lines


def _source_row(row: Mapping[str, Any], name: str) -> str:
    return f"| {name} | {row['n']:,} | {_means([row], 'log_loss', 'ece')} | {row['bias']:+.3f} |"


def _means(rows: Sequence[Mapping[str, Any]], *keys: str) -> str:
    """Means of raw and of calibrated figures, as cells."""
    means = [[np.mean([row[kind][key] for row in rows]) for kind in ("raw", "calibrated")] for key in keys]
    return " | ".join(f"{raw:.3f} / {calibrated:.3f}" for raw, calibrated in means)


def _some_names(labels: Sequence[str], n_names: int = 8) -> str:
    """The first labels by name, and the number of all others."""
    ending = f" and {len(labels) - n_names} more" if len(labels) > n_names else ""
    return _names(labels[:n_names]) + ending


def _sources(card: Mapping[str, Any]) -> str:
    return "; ".join(
        f"[{item['name']}]({item['address']}/tree/{item['commit']}) ({item['licence']}, {_size(item)})"
        for item in card["sources"]
    )


def _size(source: Mapping[str, Any]) -> str:
    unit = "entities" if "entities" in source else "tokens"
    return f"{source['documents']:,} documents, {source[unit]:,} {unit}"


def _names(labels: Sequence[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels) or "none"


def tables(card: Mapping[str, Any]) -> str:
    """The tables of one card."""
    rows = card["left_out"]
    parts = [_figures(rows)]
    exact = [{**row, **row["judged_exact"], "labels": {}} for row in rows if "judged_exact" in row]
    if exact:
        parts += ["The same map judged by equal labels (every feature of the gold, and no other):", "", _figures(exact)]
    if card.get("trained_on"):
        title = "A source whose older release the pipeline was trained on, so that it takes no part in the gate:"
        parts += [title, "", _figures(card["trained_on"])]
    for key, title in (
        ("exact", "The same form, fitted and judged by exact spans:"),
        ("judged_exact", "The map that is shipped, judged by exact spans:"),
    ):
        if card.get(key):
            parts += [title, "", _figures(card[key])]
    if card["cutoffs"]:
        parts += [_cutoffs(card)]
    if card.get("further"):
        title = "Sources that nothing was fitted or chosen on, judged by the card as it is:"
        parts += [title, "", _figures(card["further"]), *_accepted_table(card["further"], card["cutoffs"]["precision"]), ""]
    if card.get("smaller_maps"):
        words = ", ".join(f"{form} {loss:.3f}" for form, loss in card["smaller_maps"].items())
        parts.append(f"Mean log loss by what runs in the pipeline: {words}.\n")
    if card.get("text_forms"):
        parts += [_text_forms(card)]
    if card.get("fairness"):
        parts += [_fairness(card)]
    parts += [_labels(card), _adapted_table(card)]
    return "\n".join(parts)


def _text_forms(card: Mapping[str, Any]) -> str:
    """A row for each form of text: means over the sources left out."""
    lines = [
        "By the form of the text, which the document decides: no capital letter, nine words in ten in capitals, or as it is. The fit saw each source in "
        "all three, with shares 1, .5 and .5. Means of the sources left out, and the highest ECE:",
        "", "| text | log loss | Brier | ECE | worst ECE | mean score less share right |", "| --- | ---: | ---: | ---: | ---: | --- |",
    ]  # fmt: skip
    for form, rows in card["text_forms"].items():
        worst = max(row["calibrated"]["ece"] for row in rows)
        biases = ", ".join(f"{row['source']} {row['bias']:+.3f}" for row in rows)
        lines.append(f"| {form} | {_means(rows, 'log_loss', 'brier', 'ece')} | {worst:.3f} | {biases} |")
    return "\n".join([*lines, ""])


def _fairness(card: Mapping[str, Any]) -> str:
    """Mean scores of right persons by the origin and shape of their names."""
    lines = [
        "Fairness: the right persons of UNER-EWT and UNER-PUD with names of ten locales, of one word or more as in the text, or all of a first name and two surnames "
        "with a hyphen; as far as the recognizer finds them (exactly, as persons). *In no list*: by the card, had the same name been in no list. *Most gained*: by "
        "a list alone. *Carried*: share that a list alone carries over the default cut-off. The last column is by a fit and lists without the five locales that "
        "are marked.",
        "", "| names | shape | found | without lists | card | in no list | most gained | carried | lists without the marked ones |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for row in card["fairness"]:
        keys = ("without_lists", "score", "unlisted", "most_gained", "carried", "left_out")
        cells = " | ".join(f"{row[key]:.3f}" for key in keys)
        lines.append(f"| {row['name']}{'' if row['listed'] else ' *'} | {row['shape']} | {row['found']} | {cells} |")
    return "\n".join([*lines, ""])


def _figures(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| source | n | log loss | Brier | ECE | mean score less share right | worst label |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        cells = _means([row], "log_loss", "brier", "ece")
        lines.append(f"| {row['source']} | {row['n']:,} | {cells} | {row['bias']:+.3f} | {_worst(row)} |")
    if len(rows) > 1:
        lines.append(f"| mean | | {_means(rows, 'log_loss', 'brier', 'ece')} | | |")
    return "\n".join([*lines, ""])


def _worst(row: Mapping[str, Any]) -> str:
    cards = {label: item for label, item in row["labels"].items() if item["n"] >= 30}
    if not cards:
        return "-"
    label = max(cards, key=lambda name: cards[name]["calibrated"] - cards[name]["raw"])
    cell = label.replace("|", r"\|")  # which would end the cell
    return f"`{cell}` {cards[label]['raw']:.2f} / {cards[label]['calibrated']:.2f} (n = {cards[label]['n']:,})"


def _cutoffs(card: Mapping[str, Any]) -> str:
    cutoffs, cutoff = card["cutoffs"], Card(Path(), card).choose_cutoff(None) or {}
    return "\n".join(
        [
            f"Default cut-off (`Span._.{card['settings']['attr']}_accept`): {cutoffs['cutoff']:.2f} for all labels, the lowest multiple of .05 with "
            f"precision {cutoffs['precision']:.2f} on each source: {cutoff['mean']:.2f} in the mean, {cutoff['worst']:.2f} on the worst, {cutoff['kept']:.2f} of "
            "the right ones kept. In a row, maps and cut-off are those of the other sources:",
            "", *_accepted_table(card["left_out"], cutoffs["precision"]), "",
            "The same with fit, cut-off and table by exact spans:",
            "", *_accepted_table(card["exact"], cutoffs["precision"]), "",
            "Other cut-offs (`--precision`): the lowest with this precision in the mean of the sources, and at most .10 less on the worst.",
            "", *_precisions(card), "",
        ]
    )  # fmt: skip


def _precisions(card: Mapping[str, Any]) -> list[str]:
    lines = ["| precision | cut-off | mean | worst | share of the right ones kept |", "| ---: | ---: | ---: | ---: | ---: |"]
    for precision in (0.7, 0.75, 0.8, 0.85, 0.9, 0.95):
        result = lowest_cutoff(card["cutoffs"]["sources"], precision, precision - 0.1)
        cells = "- | - | - | -" if result is None else " | ".join(f"{value:.2f}" for value in result.values())
        lines.append(f"| {precision:.2f} | {cells} |")
    return lines


def _accepted_table(rows: Sequence[Mapping[str, Any]], precision: float) -> list[str]:
    """Entities above the cut-off, beside a raw score that is at least the wanted precision."""
    lines = [
        f"| source | cut-off | accepted | right of them | share of the right ones kept | a raw score of {precision:.2f} or more accepts | right of them | kept |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        raw = row["raw_accepted"]
        counts = ((row["accepted"], row["accepted_right"]), (raw["accepted"], raw["right"]))
        cells = [f"{n:,} | {right / max(1, n):.2f} | {right / max(1, row['right']):.2f}" for n, right in counts]
        lines.append(
            f"| {row['source']} | {'-' if row['cutoff'] is None else format(row['cutoff'], '.2f')} | {' | '.join(cells)} |"
        )
    return lines


def _labels(card: Mapping[str, Any]) -> str:
    if not card["worse"]:
        return "No label with 30 or more predictions is worse than raw on any source.\n"
    words = "; ".join(
        f"`{item['label']}` on {item['source']} ({item['raw']:.3f} / {item['calibrated']:.3f}, n = {item['n']:,})"
        for item in card["worse"]
    )
    return f"Log loss above raw: {words}.\n"


def _adapted_table(card: Mapping[str, Any]) -> str:
    """What `calib adapt` adds with labelled documents of a source left out."""
    rows = card["adapted"]
    unit = "predicted entities" if card["component"] == "ner" else "documents"
    lines = [
        f"`calib adapt` with labelled documents of the source left out, mean of {rows[0]['draws']} draws; worse: draws in which log loss rose by more than .005.",
        "", f"| source | labelled {unit} | log loss before | adapted | fit from nothing on the same | worse |", "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for row in rows:
        losses = " | ".join(f"{row[key]:.4f}" for key in ("before", "after", "from_nothing"))
        lines.append(f"| {row['source']} | {row['labelled']} | {losses} | {row['worse']} |")
    n_least = sorted({row["labelled"] for row in rows})[1]
    worse = [
        f"{row['source']} ({row['labelled']})" for row in rows if row["labelled"] >= n_least and row["after"] > row["before"]
    ]
    where = f"but on {', '.join(worse)}" if worse else "on every source"
    return "\n".join([*lines, "", f"From {n_least} labelled {unit} the mean is better {where}.", ""])
