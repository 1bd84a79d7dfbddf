"""`spacy calib plot`: pictures of how true a pipeline's probabilities are on gold data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import calib_error
from .shared.checks import check_option
from .shared.command import choice, command
from .shared.gold import check_bins, check_scored
from .shared.options import (
    FORMATS,
    FirstAttr,
    FloorSeed,
    NBins,
    NGroups,
)
from .shared.outputs import Output
from .shared.results import deliver
from .shared.run import Run
from .shared.screen import msg
from .shared.seen import seen_in, show_seen
from .shared.texts import text_files

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..pairs.judged import JudgedPairs
    from ..pipe.component import Calibrator
    from ..types import Groups

KINDS = ("reliability", "top", "groups", "errors", "coverage")
# Of windows in the place of gold.
WATCH = "watch"
IMAGES = ("png", "svg")
JUDGED = ("tokens", "entities", "documents")


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Run):
    """What `plot` draws, of what, and where to."""

    needs_gold = True

    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the pictures, or a .png or .svg file for one")
    ] = None
    kind: Annotated[
        str | None,
        choice(
            (*KINDS, "all", WATCH),
            "--kind",
            "-k",
            help="What is drawn; with --tag just the diagrams of tags; watch: the windows in DATA that `calib watch` wrote",
            show_default="all",
        ),
    ] = None
    tags: Annotated[list[str], typer.Option("--tag", "-T", help="A diagram for this tag (may be repeated)")] = field(
        default_factory=list
    )
    attr: FirstAttr = None
    of: Annotated[
        str | None, choice(JUDGED, "--of", help="Of what", show_default="entities or documents where the pipe scores them")
    ] = None
    bins: NBins = None
    groups: NGroups = None
    seed: FloorSeed = 0
    image: Annotated[str, choice(IMAGES, "--image", help="Kind of the files in a folder")] = "png"
    dpi: Annotated[int, typer.Option("--dpi", help="Dots per inch of PNG")] = 150
    format: Annotated[
        str, choice(FORMATS, "--format", help="What is printed: the files, or the numbers behind the pictures")
    ] = "table"

    def check_options(self) -> None:
        """RAISES C056: tags of windows."""
        check_option("--tag", not (self.tags and self.kind == WATCH), f"left out beside --kind {WATCH}", ", ".join(self.tags))

    def files(self) -> list[Path]:
        return text_files(self.data) if self.kind == WATCH else super().files()

    @property
    def kinds(self) -> list[str]:
        """The pictures to draw besides that of the tags."""
        if self.kind is None and self.tags:
            return []
        return list(KINDS) if self.kind in (None, "all") else [str(self.kind)]

    @property
    def targets(self) -> dict[str, Path]:
        """The file of each picture; none without an output.

        RAISES C056: no output where one is needed, or one of another kind. C097: one file for several pictures.
        """
        names = [*self.kinds, *(["tags"] if self.tags else [])]
        wanted = "a folder, or a file that ends in .png or .svg"
        check_option("--output", self.output is not None or self.format == "json", wanted, "nothing")
        if self.output is None:
            return {}
        if self.output.is_dir() or not self.output.suffix:
            return {name: self.output / f"{name}.{self.image}" for name in names}
        check_option("--output", self.output.suffix.removeprefix(".") in IMAGES, wanted, self.output)
        if len(names) > 1:
            raise calib_error("C097", path=self.output, pictures=", ".join(names))
        return {names[0]: self.output}

    def outputs(self) -> list[Output]:
        return [Output("--output", path) for path in self.targets.values()]


@command(PlotOptions, does="The same as diagrams, PNG or SVG", example="./calibrated test.spacy --output plots")
def plot(run: PlotOptions) -> dict[str, Any]:
    """
    Draw how true the probabilities of a calibrated pipeline are: reliability
    diagrams over all tags, of the likeliest one, by group and by tag, the error
    of each group before and after, with intervals and noise floor, and the
    accuracy of the most confident share. Or (--kind watch) what accuracy to
    expect over time, from windows that `calib watch` wrote.

    RETURNS (dict): "pipe", "of", "bins", "pairs", "seen" (see `expect.seen.SeenShare`), "pictures": name -> the numbers in it (panels as in `pages.plot_data.Panel`, rows as
        in `metrics.table.ErrorRow`), "files": name -> the file written. Of windows: "pipe", "attr", "pictures" (rows as in `pages.over_time.windows_of`), "files".
    RAISES CalibError: every fault of the input.
    """
    from ..pipe.scorer import scorer_like

    targets = run.targets
    if targets:
        from ..pages.plots import figure_class

        figure_class()
    nlp, pipe = run.open()
    if run.kind == WATCH:
        return plot_windows(run, pipe, targets)
    unit = unit_of(pipe, run.of)
    labels = pipe.lookup.span_labels() if unit == "entities" else pipe.lookup.labels()
    _check_tags(run.tags, labels, pipe)
    done = run.annotate(nlp, [pipe])
    scorer = scorer_like(pipe.scorer, run.bins, run.groups)
    n_bins = scorer.n_bins
    judged = judge_unit(nlp, done, pipe, unit, labels, n_bins)
    own = pipe.spans.groups if unit == "entities" else pipe.groups
    assert own is not None
    judging = scorer.judging(own, labels)
    what = "tag" if unit == "tokens" else "label"
    numbers = picture_numbers(judged, judging, labels, run.kinds, run.tags, n_bins, run.seed, what)
    seen = seen_in(pipe, done)
    if targets:
        judged_what = f"{pipe.source.component or 'scores'} of {nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
        write_pictures(
            numbers,
            targets,
            f"{judged_what}, judged on {run.data.name}{' = THE FIT DATA' if seen and seen['many'] else ''} ({unit})",
            run.dpi,
        )
    result = {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "of": unit,
        "bins": n_bins,
        "pairs": len(judged.pairs),
        "seen": seen,
        "pictures": {name: _plain(held) for name, held in numbers.items()},
        "files": {name: str(path) for name, path in targets.items()},
    }
    deliver(result, lambda: show_files(targets, seen), output=None, format=run.format, silent=run.silent)
    return result


def plot_windows(run: PlotOptions, pipe: Calibrator, targets: Mapping[str, Path]) -> dict[str, Any]:
    """Judge the windows in DATA and draw them. RAISES C237 to C239, C243: see `read_windows`."""
    from ..pages.over_time import plot_over_time, windows_of
    from ..pages.plots import picture_bytes
    from .shared.atomic import write_file
    from .shared.windows import read_windows

    lines = read_windows(pipe, [run.data]).lines()
    result = {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "pictures": {WATCH: windows_of(lines)},
        "files": {name: str(path) for name, path in targets.items()},
    }
    for path in targets.values():
        title = f"{pipe.source.component or 'scores'} on {run.data.name}"
        assert pipe.learned.record is not None
        figure = plot_over_time(lines, pipe.learned.record.accuracy, title=title).figure
        write_file(path, picture_bytes(figure, path.suffix, run.dpi))
    deliver(result, lambda: show_files(targets, None), output=None, format=run.format, silent=run.silent)
    return result


def unit_of(pipe: Calibrator, of: str | None) -> str:
    """RAISES C065: entities are asked for, and the pipe scores none. C266: tokens or documents, and the others have the labels."""
    from ..doc.annotations import get_annotation

    if of == "entities" and pipe.spans.groups is None:
        raise calib_error("C065", name=pipe.name, component=pipe.source.component or "the source")
    own = f"{pipe.fit_info.row_unit}s"
    if of not in (None, "entities", own):
        raise calib_error("C266", name=pipe.name, component=pipe.source.component or "the source", own=own, given=of)
    first = pipe.spans.groups is not None and get_annotation(pipe.fit_info.layer).spans_first
    return of or ("entities" if first else own)


def _check_tags(tags: Sequence[str], labels: Sequence[str], pipe: Calibrator) -> None:
    """RAISES C098: the pipe does not know one of the tags."""
    for tag in tags:
        if tag not in labels:
            some = ", ".join(labels[:60]) + (", ..." if len(labels) > 60 else "")
            raise calib_error("C098", name=pipe.name, tag=tag, available=some)


def judge_unit(
    nlp: Language, done: list[Example], pipe: Calibrator, unit: str, labels: Sequence[str], n_bins: int
) -> JudgedPairs:
    """The pairs to draw.

    RAISES C030: the data has no gold for them. C075: there are no scores. C005: there are fewer pairs than bins.
    """
    from ..doc.annotations import get_annotation
    from ..pipe.scorer import corpus_of

    annotation = get_annotation(pipe.fit_info.layer)
    corpus = corpus_of(done, pipe.attr, pipe.lookup.labels())
    judged = corpus.span_pairs(labels) if unit == "entities" else corpus.pairs()
    known = unit == "entities" and any(annotation.known_tokens(example.reference).any() for example in done)
    if not judged.pairs.n_units and not known:  # known, but none found, is a matter of `check_bins`
        check_scored(nlp, pipe, done)
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component or "the source")
    check_bins(len(judged), n_bins, pipe.threshold)
    return judged


def picture_numbers(
    judged: JudgedPairs,
    groups: Groups,
    labels: Sequence[str],
    kinds: Sequence[str],
    tags: Sequence[str],
    n_bins: int,
    seed: int,
    what: str = "tag",
) -> dict[str, list[Any]]:
    """Picture -> its panels, or the rows of the error table. what (str): How the pictures call a label."""
    from ..pages.plot_data import coverage_curves, group_panels, reliability_panel, tag_panels, top_panel
    from ..statistics.figures import table_of_counts
    from ..statistics.judged import count_judged

    pairs, calibrated = judged.pairs, judged.calibrated
    numbers: dict[str, list[Any]] = {}
    if "reliability" in kinds:
        note = f"{len(pairs):,} pairs"
        numbers["reliability"] = [reliability_panel(pairs.scores, calibrated, pairs.hits, f"All {what}s", note, n_bins)]
    if "top" in kinds:
        numbers["top"] = [top_panel(pairs, calibrated, n_bins)]
    if "groups" in kinds:
        numbers["groups"] = group_panels(pairs, calibrated, groups, labels, n_bins, what)
    if "errors" in kinds:
        numbers["errors"] = table_of_counts(count_judged(judged, len(labels)), groups, n_bins, seed)["errors"]
    if "coverage" in kinds:
        numbers["coverage"] = [coverage_curves(pairs, calibrated)]
    if tags:
        numbers["tags"] = tag_panels(pairs, calibrated, labels, tags, n_bins)
    return numbers


def _plain(held: list[Any]) -> list[dict[str, Any]]:
    return [one if isinstance(one, dict) else asdict(one) for one in held]


def write_pictures(numbers: Mapping[str, list[Any]], targets: Mapping[str, Path], title: str, dpi: int) -> None:
    """Draw all pictures, then write them.

    RAISES C055: a file cannot be written.
    """
    from ..pages.plots import draw_panels, picture_bytes, plot_coverage, plot_errors
    from .shared.atomic import write_file

    drawn = {}
    for name, held in numbers.items():
        if name == "errors":
            figure = plot_errors(held, title=title).figure
        elif name == "coverage":
            figure = plot_coverage(held[0], title=title).figure
        else:
            measure = {"reliability": "SMCE", "top": "ECE", "groups": "GMCE"}.get(name, "error")
            figure = draw_panels(held, title, measure=measure, columns=3)
        drawn[name] = picture_bytes(figure, targets[name].suffix, dpi)
    for name, content in drawn.items():
        write_file(targets[name], content)


def show_files(targets: Mapping[str, Path], seen: dict[str, Any] | None) -> None:
    """Say where the pictures are."""
    show_seen(seen)

    for name, path in targets.items():
        msg.good(f"{'the tags asked for' if name == 'tags' else name}: {path}")
