"""`spacy calib fit`: learn calibrated probabilities from held-out gold and write the pipeline with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from ..calibration.sets import COVERAGES
from ..corpus.visible import shown_path
from ..doc.events import EVENTS
from ..errors import calib_error
from .fitting.fitted_pipe import add_calib, load_readable, own_block, with_inline_recognizer
from .fitting.labels import MOST_UNKNOWN, map_labels, map_of_pipe
from .fitting.names import NORMALIZE, SCALINGS
from .fitting.overrides import overrides_of
from .fitting.promises import check_sets, warn_of_promises
from .fitting.settings import check_options, complete_source, pipe_settings, settings_from_file
from .shared.checks import check_format, check_numbers, check_option
from .shared.examples import data_files, read_examples, run_pipes
from .shared.gold import check_has_gold, unknown_sentence
from .shared.loading import import_user_code, use_gpu
from .shared.options import Code, Component, DocKey, Force, Format, GoldPreproc, GpuId, Method, NewAttr, Silent, one_of
from .shared.outputs import check_pipeline_folder
from .shared.results import print_json
from .shared.screen import number, print_table, user_errors, warn

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..calibration.sufficiency import HeldOut
    from ..pipe.component import Calibrator
    from ..pipe.fit_info import FitInfo, FitRow


def fit_cli(
    # fmt: off
    ctx: typer.Context,
    model: str = typer.Argument(..., metavar="MODEL", help="Pipeline to calibrate: package name or path"),
    data: Path = typer.Argument(..., metavar="DATA", help="Held-out gold: a .spacy file or a folder of them"),
    output: Path = typer.Argument(..., metavar="OUTPUT", help="Folder to write the calibrated pipeline to"),
    component: Component = None,
    train_data: Path = typer.Option(None, "--train-data", "-t", help="Training gold, for tag frequencies; else those of DATA"),
    groups: int = typer.Option(None, "--groups", help="Tag frequency groups; 1 pools all tags", show_default="5"),
    method: Method = None,
    scaling: str = typer.Option(
        None,
        "--scaling",
        "-S",
        metavar="NAME",
        help=f"Weigh a token's tags anew first: {', '.join(SCALINGS)}, or a registered name",
    ),
    tag_offsets: bool = typer.Option(False, "--tag-offsets", help="Correct each tag by itself too, pooled towards its group"),
    config: Path = typer.Option(
        None, "--config", help="Config with a [components.calib] block, in place of the one that the pipeline may have"
    ),
    bins: int = typer.Option(None, "--bins", "-b", help="Adaptive bins, for binning methods and metrics", show_default="10"),
    threshold: float = typer.Option(None, "--threshold", help="Scores below it take no part", show_default="0.01"),
    normalize: str = typer.Option(
        None,
        "--normalize",
        help="Rescale a token's scores: kept (they sum to 1), other (room for the tags below the threshold)",
        show_default="none",
        **one_of(NORMALIZE),
    ),
    intervals: bool = typer.Option(
        False, "--intervals", help="Give every token a Venn-Abers interval (Token._.calib_interval)"
    ),
    sets: float = typer.Option(
        None, "--sets", help="Make sets of tags (Token._.calib_set) that miss the right tag of at most this share of tokens"
    ),
    coverage: str = typer.Option(
        None,
        "--coverage",
        help="What the sets promise that for; marginal: all tokens",
        show_default="marginal",
        **one_of(COVERAGES),
    ),
    allow_empty_sets: bool = typer.Option(
        False, "--allow-empty-sets", help="Leave a set empty where no tag is sure enough; else it holds the likeliest tag"
    ),
    event: str = typer.Option(None, "--event", help="When an entity counts as right", show_default="exact", **one_of(EVENTS)),
    granularity: str = typer.Option(
        None, "--granularity", help="Token labels of a recognizer", show_default="type", **one_of(("type", "biluo"))
    ),
    beam_width: int = typer.Option(None, "--beam-width", help="Take a recognizer's probabilities from a beam this wide"),
    beam_density: float = typer.Option(
        None, "--beam-density", help="Drop parses below this share of the best from the beam", show_default="0.0"
    ),
    label_map: str = typer.Option(
        None, "--map", help="The component's labels in the words of the data: PERSON=PER,GPE=LOC,DATE= or a .json or .tsv file"
    ),
    allow_unknown: bool = typer.Option(False, "--allow-unknown", help="Go on where the component knows few of the gold labels"),
    second_pass: bool = typer.Option(
        False, "--second-pass", help="Leave a recognizer as it is and decode again for the scores, which takes longer"
    ),
    attr: NewAttr = None,
    format: Format = "table",
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: int = typer.Option(1, "--n-process", help="Worker processes; recognizers are read in one"),
    gpu_id: GpuId = -1,
    code: Code = None,
    force: Force = False,
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Learn calibrated probabilities for a component of a trained pipeline from
    held-out gold, and write the whole pipeline with them to OUTPUT. Use data
    that the pipeline was not trained on.

    Any setting of the pipe can be given as in `spacy train`, for instance
    --components.calib.grouping.n_groups 3. What counts, first to last: options,
    such settings, --config, the calib pipe that the pipeline has already, and
    the defaults named here.
    """
    with user_errors():
        given = {
            "component": component, "groups": groups, "method": method, "bins": bins, "threshold": threshold, "attr": attr,
            "tag_offsets": tag_offsets or None, "scaling": scaling, "normalize": normalize, "intervals": intervals or None,
            "sets": sets, "coverage": coverage, "allow_empty_sets": allow_empty_sets or None, "event": event, "granularity": granularity, "beam_width": beam_width, "beam_density": beam_density,
        }  # fmt: skip
        fit(
            model, data, output, train_data=train_data, config=config, overrides=overrides_of(ctx), second_pass=second_pass, label_map=label_map, allow_unknown=allow_unknown, gold_preproc=gold_preproc, doc_key=doc_key,
            format=format, n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent, **{key: value for key, value in given.items() if value is not None},
        )  # fmt: skip


def fit(
    model: str,
    data: Path,
    output: Path,
    *,
    train_data: Path | None = None,
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    second_pass: bool = False,
    label_map: str | None = None,
    allow_unknown: bool = False,
    gold_preproc: bool = False,
    doc_key: str | None = None,
    format: str = "table",
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
    **options: Any,
) -> Calibrator:
    """What the command does. options: component, groups, method, scaling, tag_offsets, bins, threshold, normalize, intervals, sets,
    coverage, allow_empty_sets, attr, event, granularity, beam_width, beam_density, as on the command line. overrides (dict | None): Dotted
    settings, by name.

    RETURNS (Calibrator): The fitted pipe.
    RAISES CalibError: every fault of the input.
    """
    from ..pairs.label_map import read_map
    from .shared.atomic import write_folder
    from .shared.screen import msg

    check_format(format)
    check_numbers(n_process=n_process, gpu_id=gpu_id)
    import_user_code(code)
    check_options(options)
    table = None if label_map is None else read_map(label_map)
    base = None if config is None else settings_from_file(config)
    read = [path for given in (data, train_data) if given is not None for path in (given, *data_files(given))]
    check_pipeline_folder(output, force, inputs=[*read, config, code], model=model)
    use_gpu(gpu_id)
    nlp, unreadable = load_readable(model)
    own = own_block(nlp, options.get("attr"), options.get("component")) if base is None else None
    name, settings = pipe_settings(base or own, options, overrides)
    if not second_pass:
        nlp = with_inline_recognizer(nlp, model, settings["source"].get("component", ""), unreadable)
    complete_source(nlp, settings, options, second_pass)
    older = map_of_pipe(nlp, name)
    calib = add_calib(nlp, name, settings)
    map_labels(calib, older if table is None else table)
    splits = calib.source.annotation(calib.lookup.component()).name == "sent"
    check_option("--gold-preproc", not (gold_preproc and splits), "left out for a component that finds sentences", "it")
    examples = read_examples(nlp, data, gold_preproc, doc_key)
    counts = None if train_data is None else count_tags(nlp, calib, train_data)
    fit_pipe(
        nlp,
        calib,
        examples,
        counts,
        counted_on=str(train_data and shown_path(Path(train_data.name))),
        silent=silent,
        n_process=n_process,
        max_unknown=1.0 if allow_unknown else MOST_UNKNOWN,
    )
    check_held_out(calib)
    check_sets(calib.fit_info)
    write_folder(output, lambda folder: nlp.to_disk(folder), force)
    component = calib.source.component
    if component and component not in nlp.pipe_names and not silent:
        warn(f"Component '{component}' is disabled in this pipeline: without it tokens get no score; see nlp.enable_pipe.")
    if not silent and format == "json":
        print_json({"output": str(output), "pipe": name, **calib.fit_info.to_dict()})
    elif not silent:
        if own is not None:
            msg.info(f"Settings that are not given are those of the pipeline's own pipe '{own[0]}'")
        show_fit(calib, output)
    return calib


class GoldCounts(NamedTuple):
    """Gold frequency of the token labels, and of the span labels."""

    tags: dict[str, int]
    spans: dict[str, int]


def count_tags(nlp: Language, calib: Calibrator, path: Path) -> GoldCounts:
    """Gold frequencies of training data.

    RAISES C030: it has no gold for the component.
    """
    pipe = calib.lookup.component()
    annotation = calib.source.annotation(pipe)
    references = [example.reference for example in read_examples(nlp, path, gold_preproc=False)]
    counts = GoldCounts(dict(calib.source.count(pipe, references)), dict(annotation.count_spans(references)))
    if not counts.tags:
        raise calib_error("C030", layer=annotation.gold.name, component=calib.source.component)
    return counts


def fit_pipe(
    nlp: Language,
    calib: Calibrator,
    examples: list[Example],
    counts: GoldCounts | None,
    *,
    counted_on: str = "",
    silent: bool = True,
    n_process: int = 1,
    max_unknown: float = 1.0,
) -> None:
    """Run what stands before the source, and the source's own component if its output is read, and fit.

    RAISES C021 to C023, C028, C034, C035: see `SourceLookup.to_fit`. C034: a second pass would be made where a component before the recognizer sets entities.
    """
    from ..pipe.scorer import scorer_like

    order = nlp.pipe_names
    pipe = calib.lookup.to_fit()[1]
    enabled = calib.source.component in order
    stop = calib.source.component if enabled else calib.name
    reads_output = enabled and pipe is not None and calib.source.reads_output(pipe)
    upstream = order[: order.index(stop) + reads_output]
    # What a component leaves to be read is kept in the process that ran it.
    workers = 1 if reads_output else n_process
    check_has_gold(examples, calib)
    ready = run_pipes(nlp, examples, upstream, silent=silent, what="Reading scores", n_process=workers)
    n_bins = scorer_like(calib.scorer).n_bins
    calib.fit(
        _without_presets(calib, pipe, ready),
        counts and counts.tags,
        span_counts=counts and counts.spans,
        min_pairs=n_bins,
        counted_on=counted_on,
        n_bins=n_bins,
        max_unknown=max_unknown,
    )


def _without_presets(calib: Calibrator, pipe: Any, examples: Iterable[Example]) -> Iterator[Example]:
    for example in examples:
        if calib.source.holds_preset(pipe, example.predicted):
            why = (
                "a component before it sets entities, and a second pass cannot tell them from its own; leave out --second-pass"
            )
            raise calib_error("C034", component=calib.source.component, why=why)
        yield example


def show_fit(calib: Calibrator, output: Path) -> None:
    """Print what was fitted, and the errors on the fit data."""
    from .shared.screen import msg

    info = calib.fit_info
    msg.good(f"Calibrated {info.component or 'the source'} on {info.tokens:,} tokens ({info.pairs:,} pairs): {output}")
    why = " (no --train-data was given)" if info.counted_on == "the fit data" else ""
    msg.info(f"Tag frequencies were counted on {info.counted_on}{why}")
    if info.unknown is not None:
        msg.warn(unknown_sentence(info.unknown, info.component or "the source"))
    warn_of_promises(info)
    warn_of_held_out(info.held_out)
    if info.selection:
        say_what_was_chosen(info.selection)
    print_fit_tables(info)


def check_held_out(calib: Calibrator) -> None:
    """RAISES C130: by cross-validation the calibrated scores are clearly worse than the raw ones."""
    held = calib.fit_info.held_out
    if held is not None and held.verdict == "worse":
        method = calib.fit_info.method.split(".")[-2]
        raise calib_error("C130", method=method, tokens=held.tokens, raw=held.raw, calibrated=held.calibrated)


def warn_of_held_out(held: HeldOut | None) -> None:
    """Say where calibrated scores are not clearly better than raw ones."""
    from .shared.screen import msg

    if held is not None and held.verdict == "unclear":
        msg.warn(
            f"On held-out parts of these {held.tokens:,} tokens calibrated scores are not clearly better than raw ones: log loss "
            f"{number(held.calibrated)}, raw {number(held.raw)} (standard error of the difference {number(held.error)}); "
            "more data would help, or the raw scores are true already"
        )


def say_what_was_chosen(selection: Mapping[str, Any]) -> None:
    """The candidate, and among how many; or why there was no choice."""
    from .shared.screen import msg

    if selection.get("too_few"):
        msg.warn(
            f"Too little data to choose a method ({selection['too_few']}); taken was the smallest safe one: {selection['chosen']}"
        )
        return
    n = len(selection["trials"]) + selection.get("dropped", 0)
    msg.info(f"Chosen among {n}: {selection['chosen']} (`spacy calib info` shows the table)")


def print_fit_tables(info: FitInfo) -> None:
    """The rows of `summarize_fit`, and of `summarize_span_fit` where there are spans."""
    from .shared.screen import msg

    print_fit_table(info.table, "SMCE (all) and GMCE (groups) on the FIT data: too good to be true")
    spans = info.spans
    if spans is not None:
        msg.text(f"{spans.spans:,} predicted entities, {spans.right:,} right (event: {spans.event})")
        if spans.fallback:
            msg.warn(f"Entity scores are passed through as they are: {spans.fallback}")
        print_fit_table(spans.table, "The same for whole entities")


def print_fit_table(table: list[FitRow], title: str) -> None:
    """One table under a title."""
    from .shared.screen import msg

    rows = [
        (
            row.group,
            f"{row.tags:,}",
            number(None if row.share is None else 100 * row.share, 1),
            f"{row.pairs:,}",
            number(row.raw),
            number(row.calibrated),
            row.fallback or "own",
        )
        for row in table
    ]
    msg.divider(title)
    header = ("Group", "Tags", "% gold", "Pairs", "Raw", "Calibrated", "Map")
    print_table(rows, header, ("l", "r", "r", "r", "r", "r", "l"))
