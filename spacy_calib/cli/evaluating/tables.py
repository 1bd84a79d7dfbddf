"""Print the tables of `spacy calib evaluate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...pairs.documents import by_unit, caveat_of
from ..fitting.conventions import show_conventions
from ..shared.screen import TableColumn, in_percent, interval, msg, number, show_other_weights, show_rows, show_seen, whole
from ..shared.writing import print_exact

if TYPE_CHECKING:
    from ...annotations import Kind


def show_tables(tables: Mapping[str, dict[str, Any]], details: bool) -> None:
    """Print the tables of all pipes, then their explanation and, for raw scores, the command that calibrates them.

    tables (Mapping): Pipe name -> `PipeTable.to_dict`. details (bool): Whether all columns are printed.
    """
    shown_tables = [table for name, table in tables.items() if _show_pipe(name, table, details)]
    if shown_tables:
        _show_legend(shown_tables, details)
    for table in shown_tables:
        if "unfitted" in table:
            msg.text("This command calibrates them, on gold that the pipeline was not trained on, and other than this:")
            print_exact([f"{table['unfitted']['fit']}\n"], json=False)


def _show_pipe(name: str, table: dict[str, Any], details: bool) -> bool:
    """Print the `PipeTable.to_dict` of a pipe; return False if nothing was evaluated. details: Whether to print all columns."""
    from ...annotations import kind_of

    kind, entities, raw_only = kind_of(table["layer"]), table.get("entities"), "unfitted" in table
    msg.divider(f"{'Raw scores' if raw_only else name} ({table['component'] or 'Doc'})")
    if not table["pairs"]:
        msg.warn(f"Nothing to evaluate: no {kind.unit} has both gold and a score.")
        if not (entities and entities["pairs"]):
            return False
        show_other_weights(table["weights_changed"])
        show_seen(table["seen"])
    else:
        _show_units(table, kind, details)
        _show_slices(table.get("slices"), f"{kind.unit}s", details)
    if entities is not None:
        msg.divider(f"{name}: whole {entities['called'][1]} (event: {entities['event']})")
        _show_entities(entities, raw_only, details)
    show_conventions(table.get("conventions"))
    return True


def _show_entities(entities: dict[str, Any], raw_only: bool, details: bool) -> None:
    """Print the tables of whole entities: errors, slices, cut-offs. raw_only, details (bool): As for `_show_errors`."""
    singular, plural = entities["called"]
    if not entities["pairs"]:
        msg.warn(f"Nothing to evaluate: no {singular} was predicted where there is gold.")
        return
    right = in_percent(entities["accuracy"], 2)
    msg.text(f"{entities['pairs']:,} predicted {plural}, {right} % right, {entities['bins']} bins")
    _show_errors(entities, "ECE", "tags", raw_only, details)
    _show_slices(entities.get("slices"), plural, details)
    _show_accepted(entities["accepted"], plural)
    _show_flagged(entities["flagged"])


def _show_units(table: dict[str, Any], kind: Kind, details: bool) -> None:
    """Print the errors of labels of tokens or documents (`kind`), after warnings. details: Whether all columns are printed."""
    raw_only = "unfitted" in table
    if raw_only:
        msg.info(table["unfitted"]["verdict"])
    show_other_weights(table["weights_changed"])
    show_seen(table["seen"])
    counts = table.get("without_map", {})
    if counts:
        labels = ", ".join(f"{label} {n:,}" for label, n in counts.items())
        msg.info(f"{sum(counts.values()):,} predictions are left out, as their labels have no map: {labels}")
    accuracy = f"{table['accuracy_is']} {in_percent(table['accuracy'], 2)} %"
    msg.text(f"{table['tokens']:,} {kind.unit}s, {table['pairs']:,} pairs, {accuracy}, {table['bins']} bins")
    _show_errors(table, "ECE (top label)", kind.label_words[1], raw_only, details)


def _show_legend(tables: Sequence[Mapping[str, Any]], details: bool) -> None:
    """Print an explanation of the figures in all tables, each sentence once. details: Whether all columns were printed."""
    from ...annotations import kind_of

    kinds = [kind_of(table["layer"]) for table in tables]
    words = dict.fromkeys((kind.unit, *kind.label_words) for kind in kinds)  # ("token", "tag", "tags"), each once
    sentences = [
        f"A pair is one {unit} and one {label} with a score above the threshold; it is a hit if that is the gold {label}."
        for unit, label, _ in words
    ]
    span_plurals = dict.fromkeys(table["entities"]["called"][1] for table in tables if table.get("entities"))
    sentences += [f"For {plural}, each predicted one is a pair." for plural in span_plurals]
    msg.text(" ".join(sentences))
    raw_only = any("unfitted" in table for table in tables)
    labels = " or ".join(dict.fromkeys(plural for _, _, plural in words))
    msg.text(
        f"{'Raw' if raw_only else 'Raw, calibrated'}: calibration error, the root mean square difference between scores and "
        f"the share of hits, of all {labels} together (SMCE), of each group of them, and the mean over the groups (GMCE). "
        "smECE: the mean difference after smoothing, without bins."
    )
    quantile = " Floor 95 %: of 100 such sets of scores, 95 show a smaller error." if details else ""
    msg.text(
        f"Lower is better. An error near the floor cannot be improved: perfectly calibrated scores would show it too.{quantile}"
    )
    if not raw_only:
        bias = "the interval is without this part, so it may lie below"
        if details:  # the debiased error has a column
            bias = "the debiased error is without this part, and the interval lies around it"
        msg.text(
            f"The 95 % interval is for the calibrated error on unlimited data, {_resampled(tables)}. Chance adds to the "
            f"measured error; {bias}."
        )
    for caveat in dict.fromkeys(caveat_of(**table["by"]) for table in tables):
        if caveat:
            msg.text(f"{caveat}.")


def _resampled(tables: Iterable[Mapping[str, Any]]) -> str:
    """Return in words what was resampled for the intervals of all tables, and how many: "by document (20)"."""
    # Answers about entities have no gold for tokens ("n": 0 documents); the documents of the entities count then.
    resampled = [table if table["by"]["n"] or not table.get("entities") else table["entities"] for table in tables]
    return " or ".join(dict.fromkeys(by_unit(**table["by"]) for table in resampled))


def _show_accepted(row: dict[str, Any] | None, units: str) -> None:
    """Print how many spans the cut-offs for a precision accept; nothing for None (no cut-offs). units: Word for spans."""
    if row is not None:
        accepted = f"{row['kept']:,} {units} ({in_percent(row['share'])} %) reach their cut-off"
        msg.text(f"{accepted}; precision {number(row['precision'])}, target {number(row['wanted'])}")


def _show_flagged(rows: list[dict[str, Any]] | None) -> None:
    """Print how many tokens each cut-off for a recall flags. rows (list | None): One per cut-off; None without cut-offs."""
    for row in rows or ():
        label = "" if row["key"] == "all" else f" for {row['key']}"
        msg.text(
            f"{row['flagged']:,} tokens ({in_percent(row['share'])} %) are flagged{label}; recall {number(row['recall'])} of "
            f"{row['tokens']:,} tokens of gold entities, target {number(row['wanted'])}"
        )


def _show_errors(table: dict[str, Any], ece: str, labels: str, raw_only: bool, details: bool) -> None:
    """Print the errors by group in a table, other metrics, and warnings. ece, labels (str): Words for the ECE and labels.

    raw_only (bool): Whether there are no calibrated scores. details (bool): Whether all columns are printed.
    """
    from ...metrics.metric import title_of
    from ...metrics.sentences import warn_of_higher_loss, warn_of_never_right
    from ...registry import metrics

    show_rows(table["errors"], _error_columns(labels.capitalize(), raw_only), details)
    titles = {"ece": ece, **{short: title_of(metric, short) for short, metric in metrics().items()}}
    no_change = {"value": None, "low": None}  # some metrics have no interval of their change
    changes = {key: table["change"].get(key) or no_change for key in table["scores"]}
    score_rows = [{"name": titles[key], **row, **changes[key]} for key, row in table["scores"].items()]
    show_rows(score_rows, _SCORES[:2] if raw_only else _SCORES)  # [:2]: name and raw score
    for warning in (warn_of_never_right(table["never_right"]), warn_of_higher_loss(table["change"])):
        if warning:
            msg.warn(warning)


def _error_columns(labels: str, raw_only: bool) -> list[TableColumn]:
    """Return the columns of the table of errors; if `raw_only`, without calibrated scores. labels (str): A title, "Tags"."""
    calibrated_columns = [
        TableColumn("Calibrated", "calibrated", number),
        TableColumn("Debiased", "debiased", number, is_detail=True),
        TableColumn("95 % interval", "", lambda row: interval({"low": row["true_low"], "high": row["true_high"]}, number)),
    ]
    return [
        TableColumn("Group", "group", lambda group: {"all": "all (SMCE)", "mean": "mean (GMCE)"}.get(group, group), "l"),
        TableColumn(labels, "tags", whole),
        TableColumn("Pairs", "pairs", whole),
        TableColumn("Raw", "raw", number),
        *([] if raw_only else calibrated_columns),
        TableColumn("Floor", "floor", number),
        TableColumn("Floor 95 %", "floor95", number, is_detail=True),
    ]


_signed_number = "{:+.4f}".format
_SCORES = (
    TableColumn("Score", "name", align="l"),
    TableColumn("Raw", "raw", number),
    TableColumn("Calibrated", "calibrated", number),
    TableColumn("Change", "value", _signed_number),
    TableColumn("95 % interval", "", lambda row: interval(row, _signed_number)),
)

_three_digits = partial(number, digits=3)
_SLICE_COLUMNS = (
    TableColumn("", "off", lambda off: "OFF" if off else "", align="l"),
    TableColumn("Slice", "slice", align="l"),
    TableColumn("Documents", "documents", whole),
    TableColumn("Labels", "n", whole),
    TableColumn("Mean score", "score", _three_digits),
    TableColumn("Right", "right", _three_digits),
    TableColumn("Gap", "", lambda row: f"{row['gap']:+.3f}"),
    TableColumn("95 % interval", "", lambda row: interval(row, "{:+.3f}".format)),
    TableColumn("Error", "calibrated", _three_digits),
    TableColumn("Floor 95 %", "floor95", _three_digits, is_detail=True),
)


def _show_slices(table: Mapping[str, Any] | None, units: str, details: bool) -> None:
    """Print how well scores are calibrated in each slice of --by. units: What has scores, "tokens". details: All columns."""
    if table is None:
        return
    rows, n_small = table["rows"], table["too_small"]  # slices that are too small have no row
    if rows:
        msg.text(f"Calibration by {table['by']} (of the top labels of {units}):")
        show_rows(rows, _SLICE_COLUMNS, details)
        n, n_off = len(rows), sum(row["off"] for row in rows)  # number of slices, and of miscalibrated ones
        msg.text(
            f"{n_off or 'None'} of {n:,} slice{'s' if n > 1 else ''} {'is' if n_off < 2 else 'are'} miscalibrated (OFF); "
            f"at most {100 * table['rate']:g} % of the slices marked so are not, on average. "
            "A gap above 0: scores are too high."
        )
    if n_small:
        from ...metrics.slices import FEWEST_DOCUMENTS, FEWEST_UNITS

        size = f"with fewer than {FEWEST_UNITS} {units} or {FEWEST_DOCUMENTS} documents"
        msg.text(f"{n_small:,} {'more' if rows else 'slices'} {size} {'is' if n_small == 1 and rows else 'are'} not evaluated.")
