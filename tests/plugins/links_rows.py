from tests.family import SourceRow
from tests.plugins.links_made import linking

_NAME, _FACTORY = "spacy-calib.EntityLinker.v1", "entity_linker"
_TEXTS = ("the river Georgia and a song . a Zorb .", "", "Dakota")
_SETTINGS = ({}, {"weights": [1.0, 2.0, 0.5, -1.0], "covered": [0.9, 0.5]})
# Identities are no labels of a scheme.
ROWS = {"sources": [SourceRow((_NAME, settings, _FACTORY), linking, _TEXTS, mapped=False) for settings in _SETTINGS]}
