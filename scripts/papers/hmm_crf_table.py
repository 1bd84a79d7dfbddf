"""HMM against CRF, after Nguyen and O'Connor (2015, section 4.2) and Nguyen's thesis: whose probabilities of tags are true? As Markdown.

    SPACY_CALIB_DATA=../shared/data python scripts/papers hmm_crf_table ewt --plot hmm-crf.png --plot-tags hmm-crf-tags.png > table.md
    python scripts/papers hmm_crf_table ptb
    python scripts/papers hmm_crf_table ark

The CRF (CRFsuite) knows tag-tag and tag-word features only and sees so much of train that it is as accurate on dev as the HMM. Every tag of every
token is a pair, those of all tags are joined; CalibErr over adaptive bins of equal size (Algorithm 1), its interval by Algorithm 2 and by bootstrap
over documents; differences are paired. Besides: an HMM that knows unknown words by their class, a CRF with full features and, for
tweets, the CRF of words on all of train, as in the thesis. Everything is chosen by accuracy on dev (hmm_crf_models.py); calibrated (isotonic, five tag frequency groups, threshold 0)
on dev, judged on test.

Tables go to stdout, messages to stderr. Models are trained once, into --cache.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from frame import between, estimated, head, make_parser, new_figure, row, save_figure, save_tables, say, verdict

from papers.chains.sums import each_joint
from papers.hmm_crf_models import CORPORA, CRF, CRF_ALL, HMM, SPELLING, Model, Split, Workshop
from spacy_calib import TagCalibrator
from spacy_calib.metrics import (
    Interval,
    ResampledError,
    calibration_error_interval,
    log_loss,
    mean_interval,
    noise_floor,
    resample_error,
)
from spacy_calib.metrics.by_document import ResampledFigure
from spacy_calib.metrics.calibration_errors import table_of
from spacy_calib.pairs.bins import make_binner
from spacy_calib.plugins.report.plot_data import without_remnants
from spacy_calib.plugins.report.plots import CALIBRATED_COLOR, RAW_COLOR, quiet_frame
from spacy_calib.types import Floats

RAW, CALIBRATED = "raw", "calibrated"
# CalibErr over all tags, accuracy; of how many tags, and of how many pairs of tags, the CRF is better.
PAPER = {HMM: (0.0153, 0.887), CRF: (0.0081, 0.887)}
PAPER_TAGS, PAPER_PAIRS = "39 of 47", "71 of 100"
N_PAIRS = 100


@dataclass(frozen=True, eq=False)
class Events:
    """m kinds of events at n places. scores (Floats), hits: Shape (n, m). documents: Of each place. size (int): Of a bin."""

    scores: Floats
    hits: Any
    documents: Any
    size: int

    @cached_property
    def together(self) -> ResampledError:
        """The error of all of them, as one set of pairs."""
        return _resampled(self.scores.ravel(), self.hits.ravel(), np.repeat(self.documents, self.hits.shape[1]), self.size)

    @cached_property
    def each(self) -> list[ResampledError]:
        """The error of each kind."""
        columns = range(self.hits.shape[1])
        return [_resampled(self.scores[:, i], self.hits[:, i], self.documents, self.size) for i in columns]

    def sampled(self) -> tuple[float, float]:
        """The paper's interval."""
        result = calibration_error_interval(self.scores.ravel(), self.hits.ravel(), bin_size=self.size, n_samples=10_000)
        return result or (0.0, 0.0)


def _resampled(scores: Floats, hits: Any, documents: Any, size: int) -> ResampledError:
    result = resample_error(scores, hits, documents, bin_size=size)
    assert result is not None
    return result


@dataclass(frozen=True, eq=False)
class Judged:
    """What a model says of a split: tags (Events) by RAW and CALIBRATED, and the frequent pairs of tags, raw."""

    model: Model
    accuracy: float
    tags: dict[str, Events]
    pairs: Events

    def sureness(self, kind: str) -> Interval:
        """Mean probability of each token's likeliest tag less the share that is right, by document."""
        events, best = self.tags[kind], self.tags[RAW].scores.argmax(axis=1)
        rows = np.arange(len(best))
        result = mean_interval(events.scores[rows, best] - events.hits[rows, best], events.documents)
        assert result is not None
        return result


def calibrated_scores(model: Model, dev: Split, test: Split) -> Floats:
    """The probabilities of test by maps learned on dev."""
    names = list(dev.columns)
    calibrator = TagCalibrator(method="isotonic", threshold=0.0, classes=names)
    calibrator.fit(model.marginals(dev), [names[column] if column >= 0 else "?" for column in dev.gold], groups=dev.documents)
    return np.asarray(calibrator.predict_proba(model.marginals(test)))


def frequent_pairs(split: Split, n: int = N_PAIRS) -> np.ndarray:
    """Columns of the pairs of tags that stand most often on consecutive tokens, shape (most, 2)."""
    first, second = split.gold[:-1][split.joined], split.gold[1:][split.joined]
    is_known = (first >= 0) & (second >= 0)
    result, counts = np.unique(np.stack([first, second], axis=1)[is_known], axis=0, return_counts=True)
    return result[np.argsort(-counts, kind="stable")[:n]]


def joint_scores(model: Model, split: Split, label_pairs: np.ndarray) -> Floats:
    """P(both tags) of each place and each wanted pair, shape (places, len(wanted)); 0 for tags that the model never met."""
    events = {split.columns[label]: i for i, label in enumerate(model.pipe.labels)}
    n = len(model.pipe.labels)
    codes = np.array([events[a] * n + events[b] if a in events and b in events else -1 for a, b in label_pairs.tolist()])
    result, begin = np.zeros((len(split.gold), len(label_pairs))), 0
    for sums in model.sums(split):
        for tokens, joint in each_joint(sums):
            result[begin + tokens] = np.where(codes >= 0, joint.reshape(len(tokens), -1)[:, codes], 0.0)
        begin += int(sums.chains.packing.lengths.sum())
    return np.clip(result[:-1][split.joined], 0.0, 1.0)


def judge(model: Model, dev: Split, test: Split, label_pairs: np.ndarray, size: int) -> Judged:
    hits = test.gold[:, None] == np.arange(len(test.columns))
    kinds = {RAW: model.marginals(test), CALIBRATED: calibrated_scores(model, dev, test)}
    pair_columns = np.stack([test.gold[:-1], test.gold[1:]], axis=1)[test.joined]
    pair_hits = (pair_columns[:, None, :] == label_pairs[None]).all(axis=2)
    pairs = Events(joint_scores(model, test, label_pairs), pair_hits, test.documents[:-1][test.joined], size)
    return Judged(
        model, model.accuracy(test), {kind: Events(events, hits, test.documents, size) for kind, events in kinds.items()}, pairs
    )


# Tables


TITLES = (
    "CalibErr | by sampling | by bootstrap | floor 95 % | mean over tags | CalibErr of {} | too sure by | log loss of a token |"
)


def show_models(models: Mapping[str, Judged], query: int, tag: str, size: int) -> None:
    """Print the table. query (int): The column of the tag that is asked for by itself."""
    head(f"| model | scores | accuracy | {TITLES.format(tag)}", 2)
    for model, (error, accuracy) in PAPER.items() if CRF_ALL not in models else ():
        row(model, "the paper, WSJ", f"{100 * accuracy:.1f}", f"{error:.4f}", *"-" * 7)
    for name, model_events in models.items():
        for kind, events in model_events.tags.items():
            flat, hits, interval = events.scores.ravel(), events.hits.ravel(), events.together.interval()
            floor = noise_floor(flat, bin_size=size, n_samples=100)
            assert floor is not None
            each = [own.estimate for own in events.each]
            errors = (f"{error:.4f}" for error in (floor.q95, np.mean(each), each[query]))
            intervals = f"{interval.estimate:.4f}", between(events.sampled()), between((interval.low, interval.high))
            loss = hits.size / len(events.hits) * (log_loss(flat, hits) or 0.0)
            row(
                name,
                kind,
                f"{100 * model_events.accuracy:.1f}",
                *intervals,
                *errors,
                estimated(model_events.sureness(kind)),
                f"{loss:.4f}",
            )
    print(
        "\nChosen on dev: " + "; ".join(f"{name}, {model_events.model.chosen}" for name, model_events in models.items()) + ".\n"
    )


def count_lower(model_events: Sequence[ResampledError], other_events: Sequence[ResampledError]) -> tuple[Interval, int, int]:
    """(how many of one's errors are lower than the other's, with an interval; of how many the interval of the difference lies below 0; above)."""
    lower = sum(a.estimate < b.estimate for a, b in zip(model_events, other_events, strict=True))
    counts = np.sum([a.values < b.values for a, b in zip(model_events, other_events, strict=True)], axis=0).astype(float)
    gaps = [a.difference(b) for a, b in zip(model_events, other_events, strict=True)]
    return (
        ResampledFigure(float(lower), counts, model_events[0].documents).interval(),
        sum((d.high or 0) < 0 for d in gaps),
        sum((d.low or 0) > 0 for d in gaps),
    )


def show_claims(models: Mapping[str, Judged], tags: Sequence[int], query: int, tag: str) -> None:
    """Print what the paper says beside what is found here. tags (Sequence[int]): The columns that test has."""
    hmm, crf, full = models[HMM], models[CRF], models[SPELLING]
    head("| claim | the paper | here | |", 4)

    def difference(
        claim: str, paper: str, model_events: ResampledError, other_events: ResampledError, prefix: str = ""
    ) -> None:
        result = model_events.difference(other_events)
        row(claim, paper, prefix + estimated(result), verdict(result))

    difference("CRF less HMM, CalibErr over all tags", "-.0072", crf.tags[RAW].together, hmm.tags[RAW].together)
    ours, theirs = ([model_events.tags[RAW].each[i] for i in tags] for model_events in (crf, hmm))
    for title, paper, model_events, other_events in (
        ("tags", PAPER_TAGS, ours, theirs), ("frequent pairs of tags", PAPER_PAIRS, crf.pairs.each, hmm.pairs.each),
    ):  # fmt: skip
        result, n_below, n_above = count_lower(model_events, other_events)
        text = f"{result.estimate:.0f} of {len(model_events)} ({result.low:.0f} to {result.high:.0f}); intervals apart: {n_below} CRF, {n_above} HMM"
        row(f"CRF better calibrated on most {title}", paper, text, verdict(result, "above", len(model_events) / 2))
    for name, side_model, kind, side in ((HMM, hmm, "under", "below"), (CRF, crf, "over", "above")):
        score = side_model.sureness(RAW)
        row(f"{name} is {kind}confident", "figure 3", f"too sure by {estimated(score)}", verdict(score, side))
    difference("CRF with full features less CRF, CalibErr", "thesis, 4.1.2", full.tags[RAW].together, crf.tags[RAW].together)
    for name, base in ((CRF_ALL, HMM), (SPELLING, CRF_ALL)) if CRF_ALL in models else ():
        a, b = (models[key].tags[RAW].each[query] for key in (name, base))
        share = f"{a.estimate:.4f} is {a.estimate / b.estimate:.2f} of {b.estimate:.4f}; "
        difference(f"{name} less {base}, CalibErr of {tag}", "thesis, 4.2.2: about half", a, b, share)
    for name, events in models.items():
        difference(f"calibration lowers CalibErr of {name}", "-", events.tags[CALIBRATED].together, events.tags[RAW].together)
    difference("calibrated, CRF less HMM", "-", crf.tags[CALIBRATED].together, hmm.tags[CALIBRATED].together)
    print()


# Pictures


def draw_curves(path: Path, models: dict[str, Judged], size: int) -> None:
    """The paper's Figure 3: share of hits against probability in bins of equal size, with 95 % bands (section 3.3), raw and calibrated."""
    figure = new_figure(9.6, 3.7)
    names = (HMM, CRF, SPELLING)
    for ax, name in zip(figure.subplots(1, len(names), sharey=True), names, strict=True):
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle=":", zorder=0)
        for kind, color in ((RAW, RAW_COLOR), (CALIBRATED, CALIBRATED_COLOR)):
            events = models[name].tags[kind]
            table = table_of(events.scores.ravel(), events.hits.ravel(), make_binner(bin_size=size))
            table = without_remnants(table, max(1, events.hits.size // size))
            half = 1.96 * np.sqrt(table.mean_hit * (1 - table.mean_hit) / table.counts)
            low, high = np.clip(table.mean_hit - half, 0, 1), np.clip(table.mean_hit + half, 0, 1)
            ax.fill_between(table.mean_score, low, high, color=color, alpha=0.25, linewidth=0)
            look = {"marker": "o", "linestyle": "--"} if kind == RAW else {"marker": "s", "linestyle": "-"}
            label = f"{kind} {events.together.estimate:.4f}"
            ax.plot(table.mean_score, table.mean_hit, color=color, markersize=3, linewidth=1, label=label, **look)
        title = f"{name}, {100 * models[name].accuracy:.1f} % right"
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="P(tag)", title=title)
        ax.set_box_aspect(1)
        ax.legend(frameon=False, fontsize="small", loc="upper left", title="CalibErr", title_fontsize="small")
        quiet_frame(ax)
    figure.axes[0].set_ylabel("share that is right")
    save_figure(path, figure)


def draw_differences(
    path: Path, models: dict[str, Judged], tags: Sequence[int], names: Sequence[str], pairs: Sequence[str]
) -> None:
    """The paper's Figure 4 as differences: CalibErr of the CRF less that of the HMM, by tag and by pair of tags, the most frequent on top."""
    figure = new_figure(8.4, 8.2)
    hmm, crf = models[HMM], models[CRF]
    of_pairs = [(pair, a.difference(b)) for pair, a, b in zip(pairs, crf.pairs.each, hmm.pairs.each, strict=True)]
    of_tags = [(names[i], crf.tags[RAW].each[i].difference(hmm.tags[RAW].each[i])) for i in tags]
    panels = {"tags": of_tags, "pairs of tags": of_pairs[: len(tags)]}
    for ax, (title, rows) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        ax.axvline(0, color="0.5", linewidth=0.8)
        for place, (_, result) in enumerate(rows):
            low, high = result.low or 0.0, result.high or 0.0
            color = CALIBRATED_COLOR if high < 0 else RAW_COLOR if low > 0 else "0.55"
            ax.plot([low, high], [place, place], color=color, linewidth=1.2)
            ax.plot(result.corrected, place, color=color, marker="o", markersize=3.5)
        ax.set_yticks(range(len(rows)), [name.replace("$", r"\$") for name, _ in rows])
        ax.set(ylim=(len(rows) - 0.4, -1.8), xlabel="CalibErr, CRF less HMM", title=f"{title}, by frequency")
        quiet_frame(ax)
        ax.tick_params(axis="y", labelsize="x-small", length=0)
        for x, side, word, color in ((0.02, "left", "CRF better", CALIBRATED_COLOR), (0.98, "right", "HMM better", RAW_COLOR)):
            ax.text(x, 1.0, word, color=color, fontsize="small", ha=side, va="top", transform=ax.transAxes)
    save_figure(path, figure)


def study(options: argparse.Namespace) -> None:
    """RAISES CalibError: a picture or file cannot be written."""
    corpus, workshop = CORPORA[options.corpus], Workshop(options.corpus, options.cache, options.most)
    models, size, names = workshop.models(), corpus.bin_size, list(workshop.columns)
    for name in corpus.tests:
        test = workshop.split(name)
        label_pairs = frequent_pairs(test)
        judged: dict[str, Judged] = {}
        for title, model in models.items():
            say(f"{name}: {title}")
            judged[title] = judge(model, workshop.dev, test, label_pairs, size)
        counts = np.bincount(test.gold[test.gold >= 0], minlength=len(names))
        tags = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i]]
        query = workshop.columns[corpus.query]
        print(
            f"**{options.corpus}, {name}** ({corpus.about}): {len(test.gold):,} tokens, {len(np.unique(test.documents)):,} documents, "
            f"{len(names)} tags ({len(tags)} of them in {name}), bins of {size:,}\n"
        )
        show_models(judged, query, corpus.query, size)
        show_claims(judged, tags, query, corpus.query)
        if name == corpus.tests[0]:
            if options.plot is not None:
                draw_curves(options.plot, judged, size)
            if options.plot_tags is not None:
                pairs = [f"{names[first]} {names[second]}" for first, second in label_pairs.tolist()]
                draw_differences(options.plot_tags, judged, tags, names, pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, cache=True, output=True, plot=True)
    parser.add_argument("corpus", choices=sorted(CORPORA), help="data set")
    parser.add_argument("--most", type=int, help="read no more documents of a split")
    parser.add_argument("--plot-tags", type=Path, help="PNG or SVG file for the differences by tag")
    options = parser.parse_args(arguments)
    study(options)
    save_tables(options.output)
    return 0
