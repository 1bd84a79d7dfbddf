"""P(every arc of a sentence is right), judged on data: the share of the parser's draws beside products of its arcs, and draws in words a second.

    python scripts/trees_study.py training/model-best dev.spacy test.spacy
    python scripts/trees_study.py training/model-best dev.spacy test.spacy --event arc

The arcs, the sentences and the forecasters are fitted on FIT; the share of the draws needs no fit. TEST is judged once. ECE is over ten adaptive bins,
in the mean; differences have 95 % intervals by document. Speed is by the clock of the processor, of what is drawn for all Docs of TEST, one by one.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from event_table import read
from frame import estimated, head, make_parser, row, save_tables
from spacy.training import Example

import spacy_calib
from spacy_calib.annotations import is_space
from spacy_calib.doc.attributes import token_values
from spacy_calib.metrics import brier, calibration_error, log_loss, log_losses, mean_interval
from spacy_calib.plugins.events.component import EventPipe, judge_labels
from spacy_calib.plugins.events.forecasts import default_forecasters, describe, fit_best
from spacy_calib.plugins.events.questions import UNKNOWN


def of_arcs(pipe: EventPipe, examples: list[Example], layer: str) -> dict[str, np.ndarray]:
    """What the calibrated scores say of the sentences that `pipe.gather` judges: the product over arcs, and the sentence's own score."""
    products, own = [], []
    for example in examples:
        doc, right = example.predicted, judge_labels(example, layer)
        units, words = pipe.event.units(doc), ~is_space(doc)
        for unit, answer in zip(units, pipe.event.judge(example, units, right).tolist() if units else (), strict=True):
            if answer != UNKNOWN:
                values = [token_values(token, pipe.attr) for token in unit if words[token.i]]
                products.append(np.prod([one.calibrated for one in values if one is not None]))
                own.append(unit._.get(f"{pipe.attr}_score"))
    return {"product of calibrated arcs": np.array(products), "score of the sentence": np.array(own, dtype=np.float64)}


def main() -> None:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("model")
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--event", choices=("head", "arc"), default="head", help="when an arc is right")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--method", help="of the arcs")
    given = parser.parse_args()
    settings = {"component": "parser", "event": given.event, **({"method": given.method} if given.method else {})}
    with tempfile.TemporaryDirectory() as folder:
        spacy_calib.fit(given.model, given.fit, Path(folder) / "model", **settings)
        nlp: Any = spacy.load(Path(folder) / "model")
    event = {"@calib_events": "spacy-calib.Tree.v1", "draws": given.draws}
    pipe: Any = nlp.add_pipe("calib_event", config={"event": event}, last=True)
    with nlp.select_pipes(disable=["calib_event"]):
        fitted, examples = read(nlp, given.fit, False), read(nlp, given.test, False)
    learned, _ = pipe.gather(fitted)
    best, _ = fit_best(learned.evidence.features, learned.hits, learned.documents, default_forecasters())
    began = time.process_time()
    found, layer = pipe.gather(examples)
    spent, words = time.process_time() - began, sum(len(example.predicted) for example in examples)
    share, hits = found.evidence.estimates, found.hits
    said = {
        "product of raw arcs": found.evidence.raw_estimates, **of_arcs(pipe, examples, layer), "share of draws": share,
        f"forecast, {describe(best.forecaster)}": np.clip(best.forecaster.predict(found.evidence.features), 0.0, 1.0),
    }  # fmt: skip
    print(
        f"\n{len(hits):,} sentences, {hits.mean():.1%} right ({given.event}); {given.draws} draws, {words * given.draws / spent:,.0f} words x draws a second\n"
    )
    head("| P(every arc right) | log loss | ECE | squared loss | log loss of the share less it |")
    for name, values in said.items():
        less = mean_interval(log_losses(share, hits) - log_losses(values, hits), found.documents)
        assert less is not None
        figures = (log_loss(values, hits), calibration_error(values, hits, norm="l1"), brier(values, hits))
        row(name, *(f"{one:.4f}" for one in figures), "" if values is share else estimated(less))
    save_tables(given.output)


if __name__ == "__main__":
    main()
