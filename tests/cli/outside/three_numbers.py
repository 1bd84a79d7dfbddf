"""A writer: three numbers of each pipe as text. It adds the number of its lines to the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spacy_calib.cli.evaluating.evaluation import Evaluation
from spacy_calib.cli.evaluating.outputs import Section
from spacy_calib.cli.shared.command import option


def write_three(
    evaluation: Evaluation, paths: Sequence[Path], *, digits: Annotated[int, option("Digits behind the point of a .txt")] = 2
) -> list[Section]:
    """Write accuracy, raw and calibrated error."""
    lines = []
    for table in evaluation.tables.values():
        whole = table["errors"][0]
        values = (table["accuracy"], whole["raw"], whole["calibrated"])
        lines.append(" ".join("-" if value is None else f"{value:.{digits}f}" for value in values))
    for path in paths:
        path.write_text("\n".join(lines), encoding="utf8")
    name = next(iter(evaluation.tables))
    return [Section(name, "tokens", "lines", len(lines), lambda rows, units: typer.echo(f"{rows} lines about {units}"))]
