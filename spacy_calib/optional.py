"""Imports of packages that need not be installed (matplotlib, pyarrow), and pictures as bytes."""

from __future__ import annotations

import io
from typing import Any

from .errors import calib_error


def load_pyarrow() -> Any:
    """Import pyarrow with its Parquet module. RAISES C304: it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise calib_error("C304") from None
    return pyarrow


# Limits of a PNG: pixels on a side in matplotlib, and pixels whose colours take a gigabyte of memory.
MAX_SIDE, MAX_PIXELS = 2**16, 2**28
# Metadata left out: they hold the time and the program of writing, so that equal pictures would have different bytes.
_NO_TRACES: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def figure_class() -> Any:
    """Return matplotlib's class Figure, for use without pyplot. RAISES C061: matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise calib_error("C061") from None
    return Figure  # pyplot would keep every figure in memory


def picture_bytes(figure: Any, suffix: str, dpi: int = 150, text: bool = False) -> bytes:
    """Return a matplotlib figure as the bytes of a picture file, the same bytes each time.

    suffix (str): ".png", ".svg" or ".pdf". dpi (int): Pixels per inch. text (bool): Write letters in SVG as text, not shapes.
    RAISES C104: the PNG would be too large.
    """
    from matplotlib import rc_context

    width, height = (round(inches * dpi) for inches in figure.get_size_inches())
    if suffix == ".png" and (max(width, height) >= MAX_SIDE or width * height > MAX_PIXELS):
        raise calib_error("C104", width=f"{width:,}", height=f"{height:,}")
    buffer = io.BytesIO()
    # For the same bytes each time, the salt fixes ids in an SVG, and _NO_TRACES leaves out the time of writing.
    with rc_context({"svg.hashsalt": "spacy-calib", "svg.fonttype": "none" if text else "path"}):
        figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=_NO_TRACES[suffix])
    return buffer.getvalue()
