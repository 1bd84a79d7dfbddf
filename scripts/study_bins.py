"""Which bins estimate a calibration error best? Made-up predictions whose true error is known, as Markdown.

    python scripts/study_bins.py --output bins.json --plot bins.png
    python scripts/study_bins.py --n 1000 --truth identity power:2 logistic:0.5 step:0.1 --counts 5 10 20 --sizes 50 100 200

After the thesis, section 4.3.2: scores are drawn from Beta(A, B), whose default resembles the scores of en_core_web_sm above .01
on the English Web Treebank; hits with a probability that --truth gives. Every sample is judged with all bins: the estimate
(Nguyen & O'Connor 2015, Algorithm 1), whether its interval (Algorithm 2) holds the true error, and the debiased estimate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from analysis.studies import best, bin_study
from study_common import add_options, all_bins, bins_name, curves, progress, save, show, sources_of

from spacy_calib.errors import CalibError


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000, help="Pairs in a sample")
    parser.add_argument("--counts", type=int, nargs="*", default=[3, 7, 10, 15, 30, 70, 150], help="Numbers of adaptive bins")
    parser.add_argument("--sizes", type=int, nargs="*", default=[20, 50, 100, 200, 500, 1000, 2000, 5000], help="Sizes of bins")
    add_options(parser, repeats=200)
    options = parser.parse_args(arguments)
    try:
        bins = all_bins(options.counts, options.sizes, ())
        if not bins:
            parser.error("--counts and --sizes are both empty; give at least one of them a value")
        rows = {}
        for truth, source in sources_of(options, parser).items():
            given = (options.repeats, options.draws, options.seed, options.bootstrap, progress(options, truth))
            rows[truth] = bin_study(source, options.n, bins, *given)
            if not options.silent:
                print(f"\nP(hit | score): {truth}\n")
                show(rows[truth])
                least = best(rows[truth])
                print(f"\nLeast rmse: {bins_name(least.bins, least.value)} ({least.rmse:.4f})", flush=True)
        save(options.output, rows)
        title = f"{options.n:,} pairs, scores ~ Beta({options.beta[0]:g}, {options.beta[1]:g}), {options.repeats} samples"
        names = {"count": "adaptive bins", "size": "bins of one size"}
        held = {kind: name for kind, name in names.items() if any(one.kind == kind for one in bins)}
        curves(options.plot, rows, "pairs_a_bin", "pairs a bin", "bins", held, title)
    except CalibError as error:
        raise SystemExit(error.message) from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
