"""Count the documents of a file of gold."""

from pathlib import Path
from typing import Annotated

import spacy
import typer

from spacy_calib.cli.shared.command import argument, command
from spacy_calib.cli.shared.examples import data_files, read_gold


@command(example="dev.spacy")
def tally(data: Annotated[Path, argument("DATA", "Gold")]) -> int:
    """
    Count the documents of a file of gold.
    """
    n_docs = sum(1 for file in data_files(data) for _ in read_gold(spacy.blank("xx"), file))
    typer.echo(f"{n_docs} documents")
    return n_docs
