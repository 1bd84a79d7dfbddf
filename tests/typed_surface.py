"""Every public name, used with its types: `tests/test_types.py` has mypy read this file, which nothing runs."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from spacy.training import Example

import spacy_calib
from spacy_calib import Answer, CalibError, DocCalib, TagCalibrator, metrics
from spacy_calib.calibration.recalibrators import IsotonicRegression, Recalibrator
from spacy_calib.calibration.scaling import Scaling
from spacy_calib.pipe.component import Calibrator
from spacy_calib.sources.source import Source
from spacy_calib.types import Floats


def half(scores: object, hits: object) -> float | None:
    return 0.5


def commands(folder: Path, examples: Iterable[Example]) -> list[Calibrator]:
    pipe: Calibrator = spacy_calib.fit(
        "model", folder, "out", component="ner", method="isotonic", event="overlap", label_map={"A": "B"}
    )
    pipes: list[Calibrator] = spacy_calib.fit_all("model", folder, "out", ["ner", "tagger"], method="auto", always=True)
    adapted: Calibrator = spacy_calib.adapt("model", folder, "out", allow_unknown=True)
    figures = spacy_calib.evaluate("model", folder, output=["a.json", "a.html"], kind="top")
    contents = spacy_calib.report("model", folder, "page.html", groups=2)
    fitted: Calibrator = pipe.fit(examples, {"NN": 3}, min_pairs=10, max_unknown=0.1).adapt(examples, max_unknown=0.2)
    source: Source = fitted.source
    recalibrator: Recalibrator = IsotonicRegression().fit([0.1, 0.9], [0, 1])
    names: list[str] = [source.component, *figures, *contents]
    scores: Floats = recalibrator.predict([0.5])
    return [*pipes, adapted] if len(names) == len(scores) else []


def docs() -> str | None:
    nlp = spacy_calib.pretrained("en_core_web_sm", components="ner", precision=0.9, by="pos")
    doc = nlp("A text")
    spacy_calib.register("mine")
    group = spacy_calib.spans_from(doc, [{"start": 0, "end": 1, "label": "X", "score": 0.5}], ents=False)
    view: DocCalib = doc._.calib
    answer: Answer = Answer.from_response({"choices": []})
    texts: list[str] = [group.name, spacy_calib.__version__, *(token.decode() for token in answer.tokens)]
    return spacy_calib.render([doc], style="ents") if len(view.calibrated) == len(texts) else None


def arrays() -> Floats:
    scores, hits = np.array([0.1, 0.9]), np.array([0, 1])
    metric: metrics.Metric = half
    numbers: list[float | None] = [metrics.ece(scores, hits), metrics.brier(scores, hits), metric(scores, hits)]
    try:
        return TagCalibrator(IsotonicRegression(), scaling="vector").fit(scores, hits).predict_proba(scores)
    except CalibError as error:
        return scores if error.code and numbers else hits


def mistakes(scaling: Scaling) -> None:
    spacy_calib.fit("model", "data", "out", metod="auto")  # type: ignore[call-arg]
    spacy_calib.fit("model", "data", "out", method="isotonik")  # type: ignore[arg-type]
    spacy_calib.fit("model", "data", "out", component=["ner"])  # type: ignore[arg-type]
    spacy_calib.adapt("model", "data", "out", force="yes")  # type: ignore[arg-type]
    spacy_calib.evaluate("model", "data", kind="relibility")  # type: ignore[arg-type]
    spacy_calib.report("model", "data", grups=2)  # type: ignore[call-arg]
    spacy_calib.pretrained("model", by="tag")  # type: ignore[arg-type]
    spacy_calib.evalute("model", "data")  # type: ignore[attr-defined]
    metrics.eec([0.5], [1])  # type: ignore[attr-defined]
    TagCalibrator(method=3)  # type: ignore[arg-type]
    metrics_by_name: dict[str, metrics.Metric] = {"half": half, "scaling": scaling}  # type: ignore[dict-item]
    assert metrics_by_name
