"""Calibrated probabilities for every token of any trained spaCy pipeline.

spacy_calib.fit(model, data, output)     learn them from held-out gold, write the pipeline with them
spacy_calib.adapt(model, data, output)   make them true on a new kind of text, from a few labelled documents
spacy_calib.evaluate(model, data)        how true they are on gold, as a dict
spacy_calib.report(model, data, output)  the same explained, as one HTML page
spacy_calib.render(doc)                  a text, shaded by doubt
spacy_calib.Monitor(nlp)                 whether a running service still reads texts like those of the fit
spacy_calib.register(attr)               make the attributes of another prefix known in this process

With a calibrated pipeline: `nlp = spacy.load(output)`, `doc = nlp(text)`, then `token._.calib_score`, `token._.calib_scores`,
`ent._.calib_score` and `doc._.calib` (a DocCalib). On the command line: `python -m spacy calib --help`. Faults are CalibErrors.
"""

from importlib import import_module
from typing import Any

from . import registry as _registry  # noqa: F401  (creates the registries)
from .about import __version__
from .doc.attributes import DocCalib, register
from .doc.rendering import render
from .errors import CalibError

# Imported when they are asked for: they need the command line, and that the pipe. `report` is the package of that name, which can be called.
_LATER = {"adapt": ".cli.api", "fit": ".cli.api", "evaluate": ".cli.api", "report": ".report", "Monitor": ".pipe.monitor"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_LATER[name], __name__)
    return module if name == "report" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = ["CalibError", "DocCalib", "Monitor", "__version__", "adapt", "evaluate", "fit", "register", "render", "report"]
