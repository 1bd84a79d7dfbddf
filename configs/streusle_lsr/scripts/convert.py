"""STREUSLE's lextags as Token.tag of gold Docs, a Doc for each review: OUTPUT/{train,dev,test}.spacy.

    SPACY_CALIB_DATA=FOLDER python scripts/convert.py OUTPUT

FOLDER holds streusle_lsr/{train,dev,test}.tsv.gz: a word on each line (form, UPOS, XPOS, lextag), a blank line between sentences and "# sent_id = REVIEW-NUMBER" before each.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

from quality.models import write_docs
from quality.readers import streusle

WHOLE = 10**9  # sentences in a Doc: all of a review


def main(output: Path) -> None:
    """Write the three files."""
    output.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        write_docs(streusle(split), output / f"{split}.spacy", WHOLE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="Folder for the files")
    main(parser.parse_args().output)
