"""Events of units judged on data: forecasts of a calib_event pipe beside the product of token scores and the units' own scores, in squared loss.

    python scripts/event_table.py en_core_web_sm dev.spacy test.spacy --component tagger --event Spans --chunks
    python scripts/event_table.py en_core_web_sm dev.spacy test.spacy --component parser --event Arc
    python scripts/event_table.py training/ner dev.spacy test.spacy --component ner --event Entity

A calib pipe of COMPONENT is fitted on FIT, then the event pipe, on scores that did not see the document; held-out documents of FIT choose its forecaster. TEST is judged
once. --chunks puts the noun chunks into doc.spans for the event Spans. Differences have 95 % intervals by document.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import estimated, head, make_parser, row, save_tables
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from tqdm import tqdm

import spacy_calib
from spacy_calib.doc.attributes import span_values
from spacy_calib.metrics import mean_interval, squared_losses
from spacy_calib.plugins.events.component import EventPipe, HeldOutScores
from spacy_calib.plugins.events.forecasts import split_loss
from spacy_calib.plugins.events.questions import UNKNOWN

CHUNKS = "noun_chunks"
EVENTS: dict[str, dict[str, Any]] = {
    "Sentence": {"@calib_events": "spacy-calib.Sentence.v1"},
    "Spans": {"@calib_events": "spacy-calib.Spans.v1", "key": CHUNKS},
    "Entity": {"@calib_events": "spacy-calib.Entity.v1"},
    "Arc": {"@calib_events": "spacy-calib.Arc.v1"},
}


def add_chunks(doc: Doc) -> Doc:
    doc.spans[CHUNKS] = list(doc.noun_chunks)
    return doc


def read(nlp: Language, file: Path, chunks: bool) -> list[Example]:
    """Examples whose predicted Docs have been through the pipeline."""
    examples = list(Corpus(file)(nlp))
    docs = nlp.pipe(example.predicted for example in examples)
    for example, doc in tqdm(zip(examples, docs, strict=True), total=len(examples), desc=file.name, disable=None):
        example.predicted = add_chunks(doc) if chunks else doc
    return examples


def own_scores(pipe: EventPipe, examples: Iterable[Example]) -> dict[str, Any]:
    """The raw and calibrated score that the calib pipe itself gives each unit that was judged; {} where it scores no such units."""
    raw, calibrated = [], []
    for example in examples:
        asked = pipe.find_units(example.predicted)
        right = np.full(len(example.predicted), UNKNOWN)  # of events that do not look at the labels of tokens
        answers = pipe.event.judge(example, asked.spans, right).tolist() if asked.spans else []
        for span, answer in zip(asked.spans, answers, strict=True):
            if answer != UNKNOWN:
                values = span_values(span, pipe.attr)
                raw.append(values and values.raw)
                calibrated.append(values and values.calibrated)
    known = bool(raw) and None not in raw and None not in calibrated
    return {"own score, raw": np.array(raw), "own score, calibrated": np.array(calibrated)} if known else {}


def judge(pipe: EventPipe, examples: list[Example]) -> None:
    """Print the table."""
    found, _ = pipe.gather(examples)
    scores = {"product, raw": found.evidence.raw_estimates, "product, calibrated": found.evidence.estimates}
    own = own_scores(pipe, examples)
    if own and len(own["own score, raw"]) == len(found.hits):
        scores |= own
    forecasts = pipe.fitted_state.forecast(found.evidence)
    losses = squared_losses(forecasts, found.hits)
    said = f"{len(found.hits):,} {pipe.event.unit_words[1]}, {found.hits.mean():.1%} yes"
    print(f"\n{pipe.event.condition}: {said}; {pipe.fitted_state.info and pipe.fitted_state.info.chosen}\n")
    head("| P(yes) | squared loss | calibration | sharpness | forecast less it |")
    for name, values in {**scores, "forecast": forecasts}.items():
        parts = split_loss(np.clip(values, 0.0, 1.0), found.hits)
        interval = mean_interval(losses - squared_losses(values, found.hits), found.documents)
        assert parts is not None and interval is not None  # noqa: PT018
        figures = (f"{one:.4f}" for one in (parts.loss, parts.calibration, parts.sharpness))
        row(name, *figures, "" if name == "forecast" else estimated(interval))


def main() -> None:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("model")
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--component", required=True)
    parser.add_argument("--event", choices=tuple(EVENTS), required=True)
    parser.add_argument("--chunks", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calib = spacy_calib.fit(given.model, given.fit, Path(folder) / "model", component=given.component)
        nlp = spacy.load(Path(folder) / "model")
    examples = read(nlp, given.fit, given.chunks)
    pipe: Any = nlp.add_pipe("calib_event", config={"attr": calib.attr, "event": EVENTS[given.event]}, last=True)
    pipe.fit(examples, HeldOutScores(calib))
    with nlp.select_pipes(disable=["calib_event"]):
        judge(pipe, read(nlp, given.test, given.chunks))
    save_tables(given.output)


if __name__ == "__main__":
    main()
