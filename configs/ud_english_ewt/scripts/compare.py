"""Print one table of all methods from the figures of `evaluate`.

python scripts/compare.py METRICS

METRICS holds NAME.json (`spacy evaluate`) and NAME.calib.json (`spacy calib evaluate`) of each calibrated pipeline. All are judged by five
tag frequency groups: the SCW configs ask for them in their scorer block.
"""

from pathlib import Path

import srsly
import typer
from wasabi import msg

ORDER = [f"{group}_{method}" for group in ("scw", "tfg") for method in ("isotonic", "histogram", "scaling_binning")]
HEADER = ("Method", "SMCE", "floor", "GMCE", "floor", "Last group", "floor", "ECE", "Brier", "Log loss")


def row(name: str, table: dict, key: str) -> tuple[str, ...]:
    """One line: the figures of `key` ("raw" or "calibrated"), with the noise floors of the calibrated scores."""
    whole, *groups, mean = table["errors"]
    figures: list[float | None] = []
    for error in (whole, mean, groups[-1]):
        figures += [error[key], error["floor"] if key == "calibrated" else None]
    figures += [table["scores"][score][key] for score in ("ece", "brier", "nll")]
    return (name, *("" if figure is None else f"{figure:.4f}" for figure in figures))


def main(metrics: Path) -> None:
    """Print the table."""
    names = [name for name in ORDER if (metrics / f"{name}.calib.json").is_file()]
    tables = {name: next(iter(srsly.read_json(metrics / f"{name}.calib.json").values())) for name in names}
    for name in names:  # the two commands must agree where they say the same thing
        scored = srsly.read_json(metrics / f"{name}.json")
        whole, *_, mean = tables[name]["errors"]
        gap = abs(scored["calib_smce"] - whole["calibrated"]) + abs(scored["calib_gmce"] - mean["calibrated"])
        if not gap < 1e-9:
            msg.fail(f"The figures of {name} come from different runs; run 'evaluate' again.", exits=1)
    first = tables[names[0]]
    accuracy = srsly.read_json(metrics / f"{names[0]}.json")["tag_acc"]
    msg.divider("UD English EWT, test")
    msg.text(f"Tag accuracy {100 * accuracy:.2f} %, {first['tokens']:,} tokens, {first['pairs']:,} pairs; 10 bins.")
    rows = [row("raw", first, "raw"), *(row(name, tables[name], "calibrated") for name in names)]
    msg.table(rows, header=HEADER, divider=True, aligns=("l", *"r" * 9))
    msg.text("GMCE is the mean over five groups of tags by training frequency, the last holding the rarest.")
    msg.text("An error near its floor cannot be improved: exactly true scores would show it too. Rank by Brier and log loss.")


if __name__ == "__main__":
    typer.run(main)
