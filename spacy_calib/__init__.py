"""Calibrated probabilities for every token of any trained spaCy pipeline.

spacy_calib.fit(model, data, output)     learn them from held-out gold, write the pipeline with them
spacy_calib.adapt(model, data, output)   make them true on a new kind of text, from a few labelled documents
spacy_calib.evaluate(model, data)        how true they are on gold, as a dict
spacy_calib.report(model, data, output)  the same explained, as one HTML page
spacy_calib.render(doc)                  a text, shaded by doubt
spacy_calib.Monitor(nlp)                 whether a running service still reads texts like those of the fit
spacy_calib.register(attr)               make the attributes of another prefix known in this process
spacy_calib.TagCalibrator(...)           the calibration alone, of probabilities in arrays: a scikit-learn estimator, without spaCy

With a calibrated pipeline: `nlp = spacy.load(output)`, `doc = nlp(text)`, then `token._.calib_score`, `token._.calib_scores`,
`ent._.calib_score` and `doc._.calib` (a DocCalib). On the command line: `python -m spacy calib --help`. Faults are CalibErrors.

Importing this package creates its registries and the default attributes in spaCy; where nobody has imported spaCy yet, as soon as somebody does.
So arrays can be calibrated (`from spacy_calib import TagCalibrator`) in a process that never imports it.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .about import __version__
from .errors import CalibError

if TYPE_CHECKING:
    from .doc.attributes import DocCalib, register
    from .doc.rendering import render

# Imported when they are asked for: they need spaCy, the command line, or scikit-learn.
_LATER = {
    "DocCalib": ".doc.attributes",
    "Monitor": ".pipe.monitor",
    "TagCalibrator": ".arrays",
    "adapt": ".cli.api",
    "evaluate": ".cli.api",
    "fit": ".cli.api",
    "register": ".doc.attributes",
    "render": ".doc.rendering",
    "report": ".cli.api",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def _register_with_spacy() -> None:
    """Create the registries and the default attributes."""
    for name in (".registry", ".doc.attributes"):
        import_module(name, __name__)


class _WhenSpacyComes:
    """Stands among the finders of imports until somebody imports spaCy, and then lets this package register there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "spacy":
            return None
        sys.meta_path.remove(self)
        found = find_spec(name)
        loader: Any = found and found.loader
        if loader is not None:
            run = loader.exec_module

            def exec_module(module: Any) -> None:
                del loader.exec_module
                try:
                    run(module)
                except BaseException:
                    sys.meta_path.insert(0, self)
                    raise
                _register_with_spacy()

            loader.exec_module = exec_module
        return found


if "spacy" in sys.modules:
    _register_with_spacy()
else:
    sys.meta_path.insert(0, _WhenSpacyComes())

__all__ = [
    "CalibError",
    "DocCalib",
    "Monitor",
    "TagCalibrator",
    "__version__",
    "adapt",
    "evaluate",
    "fit",
    "register",
    "render",
    "report",
]
