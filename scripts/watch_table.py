"""The alarms of `spacy calib watch`: how many are false on texts like those of the fit, and how soon other texts are noticed.

    SPACY_CALIB_DATA=../shared/data python scripts/watch_table.py --cache DIR [NAME ...]

Streams of texts are drawn at random, with replacement, from texts that the pipe was not fitted on, home texts or others; their counts are those
of a Monitor, and are judged as it does: windows of 200 texts, one false alarm in 1,000 windows at most. First table: --streams streams of
--windows windows of home texts alone. Second: streams of home sentences into which others come, all of them or a share; told is the window,
counted from the first with others, that gives the first alarm. "sentences": each sentence a Doc, the documents else.

Pipelines as in scripts/shift_table.py. What the method does was chosen on EWT (tweets: those of ARK); it is judged on Porttinari, whose Docs have
ten sentences, or are a tweet.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from frame import bare, docs_in, head, make_parser, open_calibrated, row, say
from quality import readers
from shift_sets import Experiment, ewt, porttinari, write
from spacy.tokens import Doc
from tqdm import tqdm

import spacy_calib
from spacy_calib import Monitor
from spacy_calib.expect.alarms import SLOW
from spacy_calib.expect.windows import Batch, Counts

WINDOW = 200
SHARES = (1.0, 0.5, 0.2, 0.1)


@dataclass(frozen=True, eq=False)
class Texts:
    """Documents whose counts are added up: the window of any of them is the sum of its documents' counts.

    rows (NDArray): What Counts holds, a row for each document. of_row (Callable): A row -> Counts.
    """

    rows: Any
    of_row: Callable[[Any], Counts]

    @property
    def n(self) -> int:
        return len(self.rows)

    def window(self, drawn: Any) -> Counts:
        """drawn: How often each document is in it."""
        return self.of_row(drawn @ self.rows)


def flat(counts: Counts) -> Any:
    return np.concatenate([np.ravel(value) for value in vars(counts).values()])


def unflat(like: Counts, row: Any) -> Counts:
    values: dict[str, Any] = {}
    place = 0
    for name, value in vars(like).items():
        size = np.size(value)
        part = row[place : place + size]
        values[name] = part.reshape(value.shape) if isinstance(value, np.ndarray) else int(part[0])
        place += size
    return Counts(**values)


def read_texts(nlp: Any, monitor: Monitor, docs: Sequence[Doc], what: str) -> Texts:
    """Run the pipeline over gold words, and count each document by itself."""
    rows = []
    for doc in tqdm(nlp.pipe(map(bare, docs)), desc=what, total=len(docs), leave=False):
        read = monitor._reader.read([monitor._reader.prepare(doc)])
        rows.append(flat(monitor._layout.count(Batch(read.documents, 1, *read[1:]))))
    nothing = monitor._layout.nothing()
    return Texts(np.array(rows), lambda row: unflat(nothing, row))


def sentences(docs: Sequence[Doc]) -> list[Doc]:
    return [sentence.as_doc() for doc in docs for sentence in doc.sents]


def home_stream(texts: Texts, monitor: Monitor, windows: int, seed: int) -> list[str]:
    """The verdicts with an alarm."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(WINDOW, np.full(texts.n, 1 / texts.n), size=windows)
    judged = monitor.judge.judge((texts.window(row), False) for row in drawn)
    return [found.verdict for found in judged if found.alarm]


def first_alarm(home: Texts, other: Texts, monitor: Monitor, share: float, seed: int, most: int = 64) -> int | None:
    """The window, from 1, of the first alarm in a stream with this share of other texts; None where there is none."""
    rng = np.random.default_rng(seed)

    def windows() -> Any:
        for _ in range(most):
            n = rng.binomial(WINDOW, share)
            parts = [(home, WINDOW - n), (other, n)]
            counts = [texts.window(rng.multinomial(size, np.full(texts.n, 1 / texts.n))) for texts, size in parts]
            yield counts[0] + counts[1], False

    return next((i for i, found in enumerate(monitor.judge.judge(windows()), 1) if found.alarm), None)


def with_tweets(cache: Path, folder: Path) -> Experiment:
    """EWT, with tweets as texts of another kind: no gold of theirs is looked at."""
    return replace(next(ewt(cache, folder)), out_of_domain={"ARK tweets": write(readers.ark("test"), folder / "ark.spacy")})


EXPERIMENTS: dict[str, Callable[[Path, Path], Experiment]] = {
    "ewt": with_tweets,
    "porttinari": lambda cache, folder: next(porttinari(cache, folder)),
}


def run(name: str, folder: Path, options: Any) -> list[tuple[str, ...]]:
    """Print the rows of the first table. RETURNS: Those of the second."""
    experiment = EXPERIMENTS[name](options.cache.resolve(), folder)
    say(f"Fitting {name} ...")
    given = {"component": experiment.component, "silent": True, **experiment.options}
    spacy_calib.fit(experiment.model, experiment.fit, folder / name, **given)
    nlp, pipe = open_calibrated(folder / name)
    monitor = Monitor(pipe, WINDOW)
    home: dict[str, Texts] = {}
    for title, file in experiment.in_domain.items():
        home[title] = read_texts(nlp, monitor, docs_in(file, nlp.vocab), title)
        home[f"{title}, sentences"] = read_texts(nlp, monitor, sentences(docs_in(file, nlp.vocab)), title)
    for title, texts in home.items():
        seeds = tqdm(range(options.streams), desc=title, leave=False)
        found = [home_stream(texts, monitor, options.windows, seed) for seed in seeds]
        alarms, slow = [len(one) for one in found], sum(one.count(SLOW) for one in found)
        streams = f"{options.streams} x {options.windows:,}"
        row(title, streams, f"{np.mean(alarms):.2f}", max(alarms), f"{slow / len(found):.2f}")
    rows: list[tuple[str, ...]] = []
    own, texts = list(home.items())[-1]
    for title, file in experiment.out_of_domain.items():
        other = read_texts(nlp, monitor, sentences(docs_in(file, nlp.vocab)), title)
        for share in SHARES:
            first = [first_alarm(texts, other, monitor, share, seed) for seed in range(options.draws)]
            held = [one for one in first if one is not None]
            shown = (f"{np.median(held):.0f}", str(max(held))) if held else ("-", "-")
            rows.append((own, title, f"{100 * share:.0f} %", *shown, f"{len(held)} of {len(first)}"))
    return rows


def main() -> int:
    parser = make_parser(__doc__, EXPERIMENTS, cache=True)
    parser.add_argument("--windows", type=int, default=1000, help="windows of a stream")
    parser.add_argument("--streams", type=int, default=20, help="streams of home documents")
    parser.add_argument("--draws", type=int, default=50, help="streams into which other texts come")
    options = parser.parse_args()
    head("| home texts | streams | false alarms a stream, mean | most | of them by windows together |")
    with tempfile.TemporaryDirectory() as folder:
        mixed = [cells for name in options.names for cells in run(name, Path(folder), options)]
    print()
    head("| home | others | share of others | first alarm in window, median | latest | noticed within 64 |", 2)
    for cells in mixed:
        row(*cells)
    return 0


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=r"\[W095\]")
    raise SystemExit(main())
