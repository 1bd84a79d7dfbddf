"""For a Python that a test starts, with this folder on its path: as where torch and what needs it are not installed.

spaCy imports all components and commands of other packages, and thinc imports torch: that takes longer than all else that such a process does.
"""

from __future__ import annotations

import sys

import catalogue

WITHOUT = ("torch", "presidio_analyzer", "spacy_curated_transformers", "spacy_huggingface_pipelines", "spacy_transformers")


class _Without:
    """Asked before all others for a module."""

    def find_spec(self, name: str, *_: object) -> None:
        if name in WITHOUT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, _Without())  # type: ignore[arg-type]

_POINTS = catalogue.AVAILABLE_ENTRY_POINTS
# A dict, as `catalogue_tables` makes it: both what is oldest and what is newest of catalogue reads one.
catalogue.AVAILABLE_ENTRY_POINTS = {
    group: [point for point in _POINTS.select(group=group) if point.value.replace(":", ".").partition(".")[0] not in WITHOUT]
    for group in _POINTS.groups
}
