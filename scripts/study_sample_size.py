"""How many pairs does a calibration error need? Made-up predictions whose true error is known, as Markdown.

    python scripts/study_sample_size.py --output sizes.json --plot sizes.png

After the thesis, section 4.3.3; see study_bins.py. --roots gives bins of that many times sqrt(n) pairs, as the thesis has them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from analysis.studies import sample_size_study
from study_common import add_options, all_bins, bins_name, curves, progress, save, show, sources_of

from spacy_calib.errors import CalibError

SIZES = [200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=SIZES, help="Pairs in a sample")
    parser.add_argument("--counts", type=int, nargs="*", default=[10], help="Numbers of adaptive bins")
    parser.add_argument("--sizes", type=int, nargs="*", default=[200], help="Sizes of bins")
    parser.add_argument("--roots", type=float, nargs="*", default=[1], help="Sizes of bins, in sqrt(n)")
    add_options(parser, repeats=100)
    options = parser.parse_args(arguments)
    try:
        bins = all_bins(options.counts, options.sizes, options.roots)
        if not bins:
            parser.error("--counts, --sizes and --roots are all empty; give at least one of them a value")
        rows = {}
        for truth, source in sources_of(options, parser).items():
            given = (options.repeats, options.draws, options.seed, options.bootstrap, progress(options, truth))
            rows[truth] = sample_size_study(source, options.n, bins, *given)
            if not options.silent:
                print(f"\nP(hit | score): {truth}\n")
                show(rows[truth])
        save(options.output, rows)
        title = f"scores ~ Beta({options.beta[0]:g}, {options.beta[1]:g}), {options.repeats} samples"
        names = {(one.kind, one.value): bins_name(one.kind, one.value) for one in bins}
        curves(options.plot, rows, "n", "pairs in a sample", "both", names, title)
    except CalibError as error:
        raise SystemExit(error.message) from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
