"""`spacy calib plot`: pictures of how true a pipeline's probabilities are on gold data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import calib_error
from .shared.checks import check_format, check_numbers, check_option
from .shared.examples import data_files, read_examples, run_pipes
from .shared.gold import check_bins, check_gold_of_examples, check_scored
from .shared.options import (
    FORMATS,
    Calibrated,
    Code,
    DocKey,
    FirstAttr,
    FloorSeed,
    ForceFile,
    Gold,
    GoldPreproc,
    GpuId,
    NBins,
    NGroups,
    NProcess,
    Silent,
    one_of,
)
from .shared.outputs import Output, check_files
from .shared.results import deliver
from .shared.scoring import open_pipeline, pipes_to_run
from .shared.screen import user_errors
from .shared.seen import seen_in, show_seen

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..pairs.judged import JudgedPairs
    from ..pipe.component import Calibrator
    from ..types import Groups

KINDS = ("reliability", "top", "groups", "errors", "coverage")
IMAGES = ("png", "svg")
UNITS = ("tokens", "entities")


def plot_cli(
    # fmt: off
    model: Calibrated,
    data: Gold,
    output: Path = typer.Option(None, "--output", "-o", help="Folder for the pictures, or a .png or .svg file for one"),
    kind: str = typer.Option(
        None,
        "--kind",
        "-k",
        help="What is drawn; with --tag just the diagrams of tags",
        show_default="all",
        **one_of((*KINDS, "all")),
    ),
    tag: list[str] = typer.Option([], "--tag", "-T", help="A diagram for this tag (may be repeated)"),
    attr: FirstAttr = None,
    of: str = typer.Option(None, "--of", help="Of what", show_default="entities where the pipe scores them", **one_of(UNITS)),
    bins: NBins = None,
    groups: NGroups = None,
    seed: FloorSeed = 0,
    image: str = typer.Option("png", "--image", help="Kind of the files in a folder", **one_of(IMAGES)),
    dpi: int = typer.Option(150, "--dpi", help="Dots per inch of PNG"),
    format: str = typer.Option(
        "table", "--format", help="What is printed: the files, or the numbers behind the pictures", **one_of(FORMATS)
    ),
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Draw how true the probabilities of a calibrated pipeline are: reliability
    diagrams over all tags, of the likeliest one, by group and by tag, the error
    of each group before and after, with intervals and noise floor, and the
    accuracy of the most confident share.
    """
    with user_errors():
        plot(
            model, data, output=output, kind=kind, tags=tag, attr=attr, of=of, bins=bins, groups=groups, seed=seed, image=image,
            dpi=dpi, format=format, gold_preproc=gold_preproc, doc_key=doc_key, n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
        )  # fmt: skip


def plot(
    model: str,
    data: Path,
    *,
    output: Path | None = None,
    kind: str | None = None,
    tags: Sequence[str] = (),
    attr: str | None = None,
    of: str | None = None,
    bins: int | None = None,
    groups: int | None = None,
    seed: int = 0,
    image: str = "png",
    dpi: int = 150,
    format: str = "table",
    gold_preproc: bool = False,
    doc_key: str | None = None,
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
) -> dict[str, Any]:
    """What the command does.

    RETURNS (dict): "pipe", "of", "bins", "pairs", "seen" (see `seen.SeenShare`), "pictures": name -> the numbers in it (panels as in `report.plot_data.Panel`, rows as
        in `report.tables.ErrorRow`), "files": name -> the file written.
    RAISES CalibError: every fault of the input.
    """
    from ..pipe.scorer import scorer_like

    check_format(format)
    check_numbers(dpi=dpi, bins=bins, groups=groups, seed=seed, n_process=n_process, gpu_id=gpu_id)
    check_option("--of", of is None or of in UNITS, f"one of {', '.join(UNITS)}", repr(of))
    kinds = wanted_kinds(kind, tags)
    targets = target_files(output, [*kinds, *(["tags"] if tags else [])], image, needed=format != "json")
    data_files(data)
    check_files([Output("--output", path) for path in targets.values()], force, inputs=[data, code], model=model)
    if targets:
        from ..report.plots import figure_class

        figure_class()
    nlp, pipe = open_pipeline(model, attr, code=code, gpu_id=gpu_id)
    unit = unit_of(pipe, of)
    labels = pipe.lookup.labels() if unit == "tokens" else pipe.lookup.span_labels()
    _check_tags(tags, labels, pipe)
    examples = read_examples(nlp, data, gold_preproc, doc_key)
    done = list(run_pipes(nlp, examples, pipes_to_run(nlp, pipe), silent=silent, what="Scoring", n_process=n_process))
    check_gold_of_examples(pipe, done, silent)
    scorer = scorer_like(pipe.scorer, bins, groups)
    n_bins = scorer.n_bins
    judged = judge_unit(nlp, done, pipe, unit, labels, n_bins)
    own = pipe.groups if unit == "tokens" else pipe.spans.groups
    assert own is not None
    judging = scorer.judging(own, labels)
    numbers = picture_numbers(judged, judging, labels, kinds, tags, n_bins, seed, "tag" if unit == "tokens" else "label")
    seen = seen_in(pipe, done)
    if targets:
        judged_what = f"{pipe.source.component or 'scores'} of {nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
        write_pictures(
            numbers,
            targets,
            f"{judged_what}, judged on {data.name}{' = THE FIT DATA' if seen and seen['many'] else ''} ({unit})",
            dpi,
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
    deliver(result, lambda: show_files(targets, seen), output=None, format=format, silent=silent)
    return result


def wanted_kinds(kind: str | None, tags: Sequence[str]) -> list[str]:
    """The pictures to draw besides that of the tags.

    RAISES C056: there is no such kind.
    """
    check_option("--kind", kind in (None, "all", *KINDS), f"one of {', '.join(KINDS)}, all", repr(kind))
    if kind is None and tags:
        return []
    return list(KINDS) if kind in (None, "all") else [str(kind)]


def target_files(output: Path | None, names: Sequence[str], image: str, needed: bool) -> dict[str, Path]:
    """The file of each picture; none without an output.

    needed (bool): Whether there has to be one.
    RAISES C056: no output where one is needed, or one of another kind. C097: one file for several pictures.
    """
    check_option("--image", image in IMAGES, " or ".join(IMAGES), repr(image))
    wanted = "a folder, or a file that ends in .png or .svg"
    check_option("--output", output is not None or not needed, wanted, "nothing")
    if output is None:
        return {}
    if output.is_dir() or not output.suffix:
        return {name: output / f"{name}.{image}" for name in names}
    check_option("--output", output.suffix.removeprefix(".") in IMAGES, wanted, output)
    if len(names) > 1:
        raise calib_error("C097", path=output, pictures=", ".join(names))
    return {names[0]: output}


def unit_of(pipe: Calibrator, of: str | None) -> str:
    """RAISES C065: entities are asked for, and the pipe scores none."""
    if of == "entities" and pipe.spans.groups is None:
        raise calib_error("C065", name=pipe.name, component=pipe.source.component)
    return of or ("tokens" if pipe.spans.groups is None else "entities")


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
    judged = corpus.pairs() if unit == "tokens" else corpus.span_pairs(labels)
    if unit == "tokens":
        has_gold = judged.pairs.n_units > 0
    else:
        has_gold = any(annotation.known_tokens(example.reference).any() for example in done)
    if not has_gold:
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
    from ..report.plot_data import coverage_curves, group_panels, reliability_panel, tag_panels, top_panel
    from ..report.tables import calibration_table

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
        numbers["errors"] = calibration_table(pairs, calibrated, groups, n_bins, seed, judged.documents, judged.unit)["errors"]
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
    from ..report.plots import draw_panels, picture_bytes, plot_coverage, plot_errors
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
    from .shared.screen import msg

    show_seen(seen)

    for name, path in targets.items():
        msg.good(f"{'the tags asked for' if name == 'tags' else name}: {path}")
