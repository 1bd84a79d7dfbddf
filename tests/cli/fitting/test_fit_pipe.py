"""What a fit refuses by its held-out figures."""

from __future__ import annotations
