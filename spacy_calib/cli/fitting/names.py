"""What options are called by on the command line, and the registered functions and settings that the names stand for."""

from __future__ import annotations

from typing import Any

# Short names of --method; a name of the registry calib_recalibrators works too.
METHODS = {
    "isotonic": "spacy-calib.Isotonic.v1",
    "histogram": "spacy-calib.Histogram.v1",
    "scaling-binning": "spacy-calib.ScalingBinning.v1",
    "temperature": "spacy-calib.Temperature.v1",
    "platt": "spacy-calib.Platt.v1",
    "beta": "spacy-calib.Beta.v1",
    "identity": "spacy-calib.Identity.v1",
}
# Short names of --scaling; a name of the registry calib_scalings works too.
SCALINGS = {
    "temperature": "spacy-calib.TemperatureScaling.v1",
    "vector": "spacy-calib.VectorScaling.v1",
    "matrix": "spacy-calib.MatrixScaling.v1",
}
# Words of --normalize, and the setting that each stands for.
NORMALIZE: dict[str, Any] = {"none": False, "kept": True, "other": "other"}
