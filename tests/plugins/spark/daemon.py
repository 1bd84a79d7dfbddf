"""What Spark forks its workers from: pyspark's own, which has imported what each of them would import for itself."""

from __future__ import annotations

from pyspark.daemon import manager

import spacy_calib.plugins.spark  # noqa: F401

if __name__ == "__main__":
    manager()
