"""The view of a Doc's scores, and what plug-ins add to it."""

from __future__ import annotations


class Point:
    """An entry point of a package."""

    def __init__(self, name, function):
        self.name, self.load = name, lambda: function
