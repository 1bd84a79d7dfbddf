"""Figures and picture of the first screen: raw and pretrained scores of entities of nine sources, none in the fit of the card that scores it.

    python scripts/first_screen.py [--model MODEL] [--cache DIR] [--plot docs/first-screen]
    python scripts/first_screen.py --other [--cache DIR]

Four sources are scored by maps that were fitted on the other three (scripts/pretrained.py); CrossNER's five fields are in no fit. Each source
weighs the same. `--plot` writes two SVG files, -light and -dark. `--other` compares with what other packages make of the raw score, fitted on
the same sources, and with spaCy's beam search.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from frame import MODEL, make_parser, say
from peer_maps import peer_maps
from pretrain import entities
from pretrain.entities import FULL, Judged
from pretrain.sources import AS_IT_IS, ENTITIES, FURTHER, TEXT_FORMS, to_examples
from pretrained import read_card
from scipy.stats import t

from spacy_calib.metrics import calibration_error, log_loss
from spacy_calib.pipe.pipeline import load_with_factories
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats

EVENT, CARD = "article", "en_core_web_sm-ner"
EDGES = np.array([0.0, 0.5, 0.7, 0.9, 1.01])
ROWS = ("below .5", ".5 to .7", ".7 to .9", ".9 or more")
BINS, FEWEST = 10, 20  # of the picture: bins of equally many scores of all sources; a source's point needs so many entities
WORDS = {"light": ("#1f2328", "#59636e", "#D55E00", "#0072B2"), "dark": ("#e6edf3", "#9198a1", "#E69F00", "#56B4E9")}


class ScoredEntities(NamedTuple):
    """Entities of a source: their raw and pretrained scores, and whether they are right, (n,) each."""

    raw: Floats
    pretrained: Floats
    right: Floats


def score_left_out(
    by_form: Mapping[str, Mapping[str, Judged]], more_sources: Mapping[str, Judged]
) -> dict[str, ScoredEntities]:
    """Return the entities of each source in texts as they are, scored by a map that was not fitted on the source."""
    sources = {}
    for name, judged_sources in {**by_form[AS_IT_IS], **more_sources}.items():
        table = entities.fit_map(FULL, entities.parts_of(by_form, [name]), EVENT)
        sources[name] = ScoredEntities(
            judged_sources.raw[judged_sources.chosen],
            judged_sources.score(table),
            judged_sources.right(EVENT).astype(np.float64),
        )
    return sources


def spread(values: Sequence[float], sign: str = "") -> str:
    """ "mean (lowest to highest)" in hundredths."""
    cells = (f"{value:{sign}.2f}".replace("0.", ".") for value in (np.mean(values), min(values), max(values)))
    return "{} ({} to {})".format(*cells)


def score_table(sources: Mapping[str, ScoredEntities]) -> str:
    """Return a Markdown table: of each range of scores the share of entities in it and of right ones among these, means of the sources."""
    lines = ["| score | raw: share of entities | right of these | pretrained: share of entities | right of these |", "| ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for number, name in enumerate(ROWS):
        cells = []
        for kind in ("raw", "pretrained"):
            shares, right = [], []
            for source in sources.values():
                in_bin = np.digitize(getattr(source, kind), EDGES) - 1 == number
                shares.append(in_bin.mean())
                right += [source.right[in_bin].mean()] if in_bin.any() else []
            cells += [f"{100 * np.mean(values):.0f} %" for values in (shares, right)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cutoff_lines(sources: Mapping[str, ScoredEntities]) -> str:
    """Return what the default cut-off accepts, and how far mean scores are off: mean, lowest and highest source."""
    cutoff = read_card(CARD)["cutoffs"]["cutoff"]
    lines = [f"right: {spread([source.right.mean() for source in sources.values()])}"]
    for kind in ("raw", "pretrained"):
        bias = spread([(getattr(source, kind) - source.right).mean() for source in sources.values()], "+")
        accepted_right = {name: source.right[getattr(source, kind) >= cutoff] for name, source in sources.items()}
        recall = spread([accepted_right[name].sum() / source.right.sum() for name, source in sources.items()])
        right = spread([values.mean() for values in accepted_right.values()])
        lines += [
            f"{kind}: mean score less share right {bias}; from {cutoff:.2f} right {right}, of the right ones accepted {recall}"
        ]
    return "\n".join(lines)


def reliability(sources: Mapping[str, ScoredEntities], kind: str) -> tuple[Floats, Floats]:
    """Return (mean score, share right) of each source in each bin, (n_sources, n_bins); NaN for fewer than FEWEST entities."""
    quantiles = np.quantile(np.concatenate([np.random.default_rng(0).choice(getattr(source, kind), 2000) for source in sources.values()]), np.linspace(0, 1, BINS + 1))  # fmt: skip
    points = np.full((2, len(sources), BINS), np.nan)
    for row, source in enumerate(sources.values()):
        scores = getattr(source, kind)
        bins = np.searchsorted(quantiles[1:-1], scores, side="right")
        for number in range(BINS):
            if (bins == number).sum() >= FEWEST:
                points[:, row, number] = scores[bins == number].mean(), source.right[bins == number].mean()
    return points[0], points[1]


def draw(sources: Mapping[str, ScoredEntities], file: Path, theme: str) -> None:
    """Thin lines of the sources, their mean in bold, and the band in which 19 of 20 new sources are expected."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    text, faint, *colors = WORDS[theme]
    style: Any = {"font.size": 14, "text.color": text, "axes.labelcolor": text, "xtick.color": faint, "ytick.color": faint, "axes.edgecolor": faint, "svg.hashsalt": "spacy-calib"}  # fmt: skip
    with mpl.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(5.2, 4.2), layout="constrained")
        axes.plot([0, 1], [0, 1], color=faint, linestyle=":", linewidth=1.5)
        for kind, color, marker in zip(("raw", "pretrained"), colors, "os", strict=True):
            scores, right = reliability(sources, kind)
            for x, y in zip(scores, right, strict=True):
                axes.plot(x, y, color=color, linewidth=0.7, alpha=0.45)
            x, y, n = np.nanmean(scores, axis=0), np.nanmean(right, axis=0), (~np.isnan(right)).sum(axis=0)
            half = t.ppf(0.975, n - 1) * np.nanstd(right - scores, axis=0, ddof=1) * np.sqrt(1 + 1 / n)
            if kind == "pretrained":
                band = np.clip([y - half, y + half], 0, 1)
                axes.fill_between(x, *band, color=color, alpha=0.15, linewidth=0, label="95 % of new sources")
            axes.plot(x, y, color=color, marker=marker, linewidth=2.5, label=f"{kind}, mean of {len(sources)} sources")
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="score of an entity", ylabel="share right")
        axes.legend(frameon=False, loc="upper left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(file, transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def beams(model: str, judged_sources: Mapping[str, Judged], cache: Path) -> dict[str, tuple[Floats, float]]:
    """Source -> (score of each judged entity by beam search, 0 where no parse of the beam has it; seconds), searched once."""
    file, nlp = cache / "pretrained" / "beams.pkl", None
    results = pickle.loads(file.read_bytes()) if file.exists() else {}
    for source in (item for item in (*ENTITIES, *FURTHER) if item.name not in results):
        say(f"Beam search in {source.name}")
        nlp = nlp or load_with_factories(model, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
        docs = [example.predicted for example in to_examples(nlp, source.read(), source.size)]
        began = time.process_time()
        readings = list(NerSource("ner", beam_width=16).readings(nlp.get_pipe("ner"), docs))
        seconds, firsts, spans = (
            time.process_time() - began,
            np.cumsum([0, *map(len, docs)]),
            judged_sources[source.name].evidence.spans,
        )
        paths: dict[tuple[int, int, int], float] = {}
        for first, reading in zip(firsts.tolist(), readings, strict=False):
            item = reading.entities
            keys = zip((item.starts + first).tolist(), (item.ends + first).tolist(), item.types.tolist(), strict=True)
            paths.update(zip(keys, item.path.tolist(), strict=True))
        keys = zip(spans.starts.tolist(), spans.ends.tolist(), spans.labels.tolist(), strict=True)
        results[source.name] = np.array([paths[key] for key in keys]), seconds
        file.write_bytes(pickle.dumps(results))
    return results


def comparison_table(
    model: str, judged_sources: Mapping[str, Judged], sources: Mapping[str, ScoredEntities], cache: Path
) -> str:
    """Return a table with the ECE of the sources (mean, lowest, highest) and their mean log loss, by each kind of score."""
    kinds: dict[str, dict[str, Floats]] = {"raw": {name: source.raw for name, source in sources.items()}}
    beam, n_tokens = (
        beams(model, judged_sources, cache),
        sum(len(words) for item in judged_sources.values() for words in item.texts),
    )
    kinds[f"beam search (16), {1e6 * sum(seconds for _, seconds in beam.values()) / n_tokens:.0f} us a token"] = {name: scores for name, (scores, _) in beam.items()}  # fmt: skip
    rng, fits = np.random.default_rng(0), peer_maps(slow=True)
    for name, source in sources.items():
        parts = [sources[entity_source.name] for entity_source in ENTITIES if entity_source.name != name]
        picks = [rng.choice(len(part.right), 5000) for part in parts]  # so that each source weighs the same
        raw, right = (np.concatenate([getattr(part, key)[pick] for part, pick in zip(parts, picks, strict=True)]) for key in ("raw", "right"))  # fmt: skip
        for peer, fit in fits.items():
            kinds.setdefault(peer, {})[name] = fit(raw, right)(source.raw)
    kinds["pretrained"] = {name: source.pretrained for name, source in sources.items()}
    lines = ["| score | ECE: mean (lowest to highest of the sources) | log loss |", "| --- | --- | ---: |"]
    for kind, scores in kinds.items():
        errors = [calibration_error(scores[name], source.right, norm="l1") or 0.0 for name, source in sources.items()]
        losses = [log_loss(scores[name], source.right) or 0.0 for name, source in sources.items()]
        lines.append(f"| {kind} | {spread(errors)} | {np.mean(losses):.3f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__, cache=True, plot=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--other", action="store_true", help="compare with other packages and with beam search")
    options = parser.parse_args(arguments)
    by_form = {form: entities.gather(options.model, ENTITIES, options.cache, form) for form in TEXT_FORMS}
    more_sources = entities.gather(options.model, FURTHER, options.cache)
    sources = score_left_out(by_form, more_sources)
    if options.other:
        print(comparison_table(options.model, {**by_form[AS_IT_IS], **more_sources}, sources, options.cache))
        return 0
    n = [len(source.right) for source in sources.values()]
    print(f"{len(n)} sources with {min(n):,} to {max(n):,} entities.\n\n{score_table(sources)}\n\n{cutoff_lines(sources)}")
    if options.plot:
        for theme in WORDS:
            file = options.plot.with_name(f"{options.plot.stem}-{theme}.svg")
            draw(sources, file, theme)
            say(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
