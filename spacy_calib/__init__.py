"""Calibrated probabilities for every token of any trained spaCy pipeline.

spacy_calib.pretrained(model)            calibrated scores for stock pipelines, without gold
spacy_calib.fit(model, data, output)     fit a calibration to held-out gold, and write the pipeline with it
spacy_calib.fit_all(...)                 fit calibrations of several components of a pipeline at once
spacy_calib.adapt(model, data, output)   adapt a calibration to another domain, from a few labelled documents
spacy_calib.evaluate(model, data)        evaluate a calibration on gold; returns a dict
spacy_calib.report(model, data, output)  write an evaluation with explanations, as one HTML page
spacy_calib.render(doc)                  a text, shaded by doubt
spacy_calib.register(attr)               register the attributes of another prefix in this process
spacy_calib.Answer.from_response(...)    a language model's answer, whose parts get scores from its tokens'
spacy_calib.spans_from(doc, found)       spans that any tool found, with their scores, on a Doc
spacy_calib.TagCalibrator(...)           the calibration alone, of probabilities in arrays: a scikit-learn estimator

With a calibrated pipeline: `nlp = spacy.load(output)`, `doc = nlp(text)`, then `token._.calib_score`, `token._.calib_scores`,
`ent._.calib_score` and `doc._.calib` (a DocCalib). On the command line: `python -m spacy calib --help`. Errors are CalibErrors.

Importing this package imports spaCy, and creates its registries and the default attributes there.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .about import __version__
from .doc.attributes import register
from .doc.doc_calib import DocCalib
from .errors import CalibError
from .registry import registry as _registry  # noqa: F401  (adds the registries to spaCy's)

if TYPE_CHECKING:
    from .cli.api import adapt, evaluate, fit, fit_all
    from .plugins.arrays.tag_calibrator import TagCalibrator
    from .plugins.llm.response import Answer
    from .plugins.pretrained.applying import pretrained
    from .plugins.report.rendering import render
    from .plugins.report.report import report
    from .sources.tool_spans import spans_from

# Name of a public object -> its module, imported only when it is asked for, as most need the command line.
_MODULES = {
    "adapt": ".cli.api",
    "evaluate": ".cli.api",
    "fit": ".cli.api",
    "fit_all": ".cli.api",
    "spans_from": ".sources.tool_spans",
    "Answer": ".plugins.llm.response",
    "TagCalibrator": ".plugins.arrays.tag_calibrator",
    "pretrained": ".plugins.pretrained.applying",
    "render": ".plugins.report.rendering",
    "report": ".plugins.report.report",
}

if not TYPE_CHECKING:  # a type checker would take any name

    def __getattr__(name):
        if name in _MODULES:  # Python calls this function for names that the module does not have yet
            return getattr(import_module(_MODULES[name], __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})  # with the names that are not imported yet


__all__ = [
    "Answer",
    "CalibError",
    "DocCalib",
    "TagCalibrator",
    "__version__",
    "adapt",
    "evaluate",
    "fit",
    "fit_all",
    "pretrained",
    "register",
    "render",
    "report",
    "spans_from",
]
