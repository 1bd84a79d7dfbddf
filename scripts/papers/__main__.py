"""Run a reproduction of a paper: `python scripts/papers NAME [OPTION ...]`; `NAME --help` lists its options. README.md has a table of all."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

PROGRAMS = (
    "coref_table", "event_counts", "event_table", "hmm_crf_table", "ocr_events", "polarity_table", "sequence_confidence",
    "streusle_crf", "streusle_table",
)  # fmt: skip


def main() -> int:
    """Import the program that is named first, and run it with the other arguments."""
    name, *arguments = sys.argv[1:] or [""]
    if name not in PROGRAMS:
        raise SystemExit(f"Name one of these programs first: {', '.join(PROGRAMS)}.")
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that programs find `papers` and what all scripts share
    sys.argv[0] = name
    result: int = importlib.import_module(f"papers.{name}").main(arguments)
    return result


if __name__ == "__main__":
    sys.exit(main())
