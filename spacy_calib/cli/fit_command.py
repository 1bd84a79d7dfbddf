"""`spacy calib fit`: learn calibrated probabilities from held-out gold and write the pipeline with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..annotations import ARC_EVENTS
from ..annotations.span_events import EVENTS
from ..calibration.replacement import FIT
from ..errors import calib_error
from ..errors.visible import shown_path
from ..pairs.label_map import read_map
from ..pipe.pipeline import import_user_code, load_pipeline, use_gpu
from .fitting.comparison import ComponentFit
from .fitting.component_fits import check_components, component_with_gold, insert_pipes, put_back, show_output
from .fitting.new_calib import load_readable, pipes_before, ready_to_read
from .fitting.settings import MAX_UNKNOWN, settings_from_file, translate_options
from .shared.command import METHODS, argument, command, option
from .shared.examples import data_files, read_examples, share_bar
from .shared.gold import match_gold, report_dropped
from .shared.options import AllowUnknown, Code, Force, Format, GoldPreproc, GpuId, LabelMap, Silent, WithOverrides
from .shared.outputs import check_pipeline_folder
from .shared.screen import msg, warn
from .shared.writing import write_pipeline

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..pairs.seen_texts import TrainTestOverlap
    from ..pipe.component import Calibrator
    from ..pipe.state import FitInfo

DATA_HELP = "Held-out gold: a .spacy or .conllu file, an export of an annotation tool (.jsonl, .json), or a folder of them"
EVENT_HELP = "What is right. Entities: exact, article (but a leading one), type, overlap; arcs: head, arc (head and label)"
ALWAYS_HELP = "Write the new fit even if raw scores, or the calibration of the pipeline, are better"
METHOD_HELP = f"Calibration method: auto (chosen on the data), {METHODS}, or a registered name"
Components = Annotated[list[str] | None, option("Component to calibrate (may be repeated)", "-C", show_default="tagger")]
Method = Annotated[str | None, option(METHOD_HELP, "-m", metavar="NAME", show_default="auto; with --groups isotonic")]
Groups = Annotated[int | None, option("Number of groups of about equally frequent tags, with one map each", show_default="5")]
Config = Annotated[Path | None, option("Config with the settings in a [components.calib] block")]
Event = Annotated[str | None, option(EVENT_HELP, words=(*EVENTS, *ARC_EVENTS), show_default="exact; for parsers head")]
Attr = Annotated[
    str | None, option("Name of the pipe and prefix of its attributes", show_default="calib; for entities calib_ent")
]
SecondPass = Annotated[
    bool, option("Keep spaCy's own recognizer or parser, and run it twice (default: one that keeps its scores)")
]


@command(example="en_core_web_sm dev.spacy ./calibrated", kind=WithOverrides)
def fit(
    model: Annotated[str, argument("MODEL", "Pipeline to calibrate: package name or path")],
    data: Annotated[Path, argument("DATA", DATA_HELP)],
    output: Annotated[Path, argument("OUTPUT", "Folder for the calibrated pipeline")],
    *,
    component: Components = None,
    train_data: Annotated[Path | None, option("Training gold, to count tag frequencies in (default: DATA)", "-t")] = None,
    method: Method = None,
    attr: Attr = None,
    force: Force = False,
    groups: Groups = None,
    config: Config = None,
    event: Event = None,
    second_pass: SecondPass = False,
    label_map: LabelMap = None,
    gold: Annotated[list[Path] | None, option("More held-out gold to fit on (may be repeated)")] = None,
    gold_preproc: GoldPreproc = False,
    allow_unknown: AllowUnknown = False,
    allow_seen: Annotated[bool, option("Continue even if over 10 % of the words to fit on are in --train-data too")] = False,
    always: Annotated[bool, option(ALWAYS_HELP)] = False,
    format: Format = "table",
    n_process: Annotated[int, option("Worker processes (recognizers always run in one)")] = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    silent: Silent = True,
    overrides: Mapping[str, Any] | None = None,
) -> Calibrator | list[Calibrator]:
    """
    Calibrate the scores of a component of a trained pipeline on gold, and write the whole pipeline, with calibrated
    probabilities, to OUTPUT. The gold has to be held out: the pipeline was not trained on it.

    Any setting of the pipe can be given as in `spacy train`, for instance `--components.calib.grouping.n_groups 3`. Precedence,
    highest first: options, such settings, --config, the calib pipe of the pipeline, the defaults named here.

    A calibrated pipeline keeps its calibration, or adapts it, unless the new fit is clearly better on held-out documents.

    RETURNS (Calibrator | list[Calibrator]): The pipe that was written, new or as it was; for several components a list.
    RAISES CalibError: any error in the input. Arguments: the annotation of each contains its help (`shared/options.py`).
    """
    # First all options and paths are checked: errors in them are reported before the pipeline is loaded.
    single_options = {"--attr": attr, "--event": event, "--config": config, "--second-pass": second_pass or None}
    components = check_components(component, single_options, overrides)
    more_gold = [gold] if isinstance(gold, (str, Path)) else gold or ()  # Python functions may be given a single path
    gold_paths = [data, *map(Path, more_gold)]
    inputs: list[Path] = []
    for path in filter(None, [*gold_paths, train_data]):
        inputs += [path, *data_files(path)]
    import_user_code(code)
    named_options = {"attr": attr, "method": method, "groups": groups, "event": event}
    options = {name: value for name, value in named_options.items() if value is not None}  # those that were given
    translate_options(options)  # called only for its errors
    gold_names = None if label_map is None else read_map(label_map)  # component label -> gold label
    base = None if config is None else settings_from_file(config)  # (name, settings) of a calib pipe
    check_pipeline_folder(output, force, inputs=[*inputs, config, code], model=model)
    use_gpu(gpu_id, n_process)

    nlp, unreadable = load_readable(model)  # unreadable: names of calib pipes that were left out
    components = components or component_with_gold(nlp, gold_paths, {**single_options, **(overrides or {})}, silent)
    calib_options: dict[str, Any] = {"gold_preproc": gold_preproc, "second_pass": second_pass, "unreadable": unreadable}
    nlp, fits = insert_pipes(nlp, model, components, base, options, overrides, gold_names, calib_options)
    examples = _read_gold(nlp, fits, gold_paths, gold_preproc, silent)
    count_labels = partial(count_training, nlp, path=train_data, examples=examples, allow_seen=allow_seen, silent=silent)
    max_unknown = 1.0 if allow_unknown else MAX_UNKNOWN  # share of gold with labels that the component does not know
    fit_options = {"n_process": n_process, "max_unknown": max_unknown, "silent": silent}
    _fit_all(nlp, fits, examples, count_labels, {"event": event, "always": always}, **fit_options)
    nlp = _choose_pipes(nlp, fits, partial(load_pipeline, model, exclude=unreadable), always)
    write_pipeline(nlp, output, force)
    if not silent:
        show_output(nlp, fits, output, format, {"--map": label_map, "--gold-preproc": gold_preproc, "--code": code})
    calibs: list[Any] = [nlp.get_pipe(component_fit.name) for component_fit in fits]
    return calibs if len(calibs) > 1 else calibs[0]


def _fit_all(
    nlp: Language,
    fits: Sequence[ComponentFit],
    examples: list[Example],
    count_labels: Callable[[Calibrator], dict[str, Any]],
    comparison_options: Mapping[str, Any],
    **fit_options: Any,
) -> None:
    """Fit the new calib pipe of each component to the examples, and compare it with the calibration that it may replace.

    fits (Sequence): One per component, in pipeline order; each gets its comparison. count_labels (Callable): Gets a new calib
    pipe; returns the label counts of the training data as arguments of `Calibrator.fit`, {} without training data.
    comparison_options (Mapping): "event" and "always" for `ComponentFit.compare`. fit_options: Arguments of `fit_pipe`.
    """
    pipes_done: list[str] = []
    for component_fit in fits:
        calib: Any = nlp.get_pipe(component_fit.name)
        fit_pipe(nlp, calib, examples, pipes_done=pipes_done, **fit_options, **count_labels(calib))
        component_fit.compare(calib, examples, **comparison_options)
        pipes_done = pipes_before(nlp, calib)  # these pipes have annotated the examples already


def _choose_pipes(nlp: Language, fits: Sequence[ComponentFit], reload: Callable[[], Language], always: bool) -> Language:
    """Return the pipeline to write, which has the chosen calib pipe of each component: the new one or the old one.

    fits (Sequence): After `compare`. reload (Callable): Loads the pipeline as it was before the fit. always (bool): Whether a
    fit that is worse than raw scores may be written. RAISES C130: a fit is worse, and not `always`.
    """
    if len(fits) == 1 and fits[0].choice != FIT:
        old_nlp, _ = fits[0].reopen_present(reload)  # not with the new fit, but with the old pipe or its adaptation
        return old_nlp
    for component_fit in fits:
        calib: Any = nlp.get_pipe(component_fit.name)
        if component_fit.choice != FIT:
            put_back(nlp, component_fit, reload)
        elif not always:
            check_fit(calib.fit_info)
    return nlp


def _read_gold(
    nlp: Language, fits: Sequence[ComponentFit], paths: Sequence[Path], gold_preproc: bool, silent: bool
) -> list[Example]:
    """Return the examples of the gold files `paths`, with gold labels renamed to those of the new calib pipe of each fit."""
    examples = read_examples(nlp, paths[0], gold_preproc, more=paths[1:])
    for component_fit in fits:
        calib: Any = nlp.get_pipe(component_fit.name)
        match_gold([calib], examples, silent, further_maps=component_fit.label_maps)
    return examples


def count_training(
    nlp: Language, calib: Calibrator, path: Path | None, examples: Iterable[Example], allow_seen: bool, silent: bool
) -> dict[str, Any]:
    """Count the gold labels of the training data at `path`; return the counts as arguments of `Calibrator.fit`, {} for no path.

    examples (Iterable[Example]): The fit data, which should not be among the training data. silent (bool): No progress bar.
    RAISES C030: the training data has no gold for the component. C482: over 10 % of the fit data is in it, not `allow_seen`.
    """
    from ..gold.reading import texts_of
    from ..pairs.seen_texts import FitTextDigests

    if path is None:
        return {}
    pipe = calib.lookup.component()
    annotation = calib.source.annotation(pipe)
    training = read_examples(nlp, path, gold_preproc=False, silent=silent)
    references = [example.reference for example in training]
    tag_counts = dict(calib.source.count_gold(pipe, references))
    if not tag_counts:
        raise calib_error("C030", layer=annotation.gold.name, component=calib.source.component)
    texts = FitTextDigests().with_texts(texts_of(annotation, training))
    check_apart(texts.overlap_with(texts_of(annotation, examples)), allow_seen)
    span_counts = dict(annotation.count_spans(references))
    return {"tag_counts": tag_counts, "span_counts": span_counts, "counted_on": str(shown_path(Path(path.name)))}


def check_apart(overlap: TrainTestOverlap | None, is_allowed: bool) -> None:
    """Warn of an `overlap` of fit and training data, if any. RAISES C482: over 10 % of the words, and `is_allowed` is False."""
    if overlap is None or not overlap.is_overlapping:
        return
    part = f"{overlap.seen:,} of {overlap.documents:,} documents ({100 * overlap.share:.0f} % of the words)"
    if not overlap.is_fit_data:  # up to 10 % of the words
        warn(f"{part} are in --train-data too, where the model is more confident than on any other text: leave them out.")
    elif not is_allowed:
        raise calib_error("C482", part=part)
    else:
        msg.fail(f"FITTED ON THE TRAINING DATA: {part} are in --train-data too, so scores on any other text will be too high.")


def fit_pipe(
    nlp: Language,
    calib: Calibrator,
    examples: list[Example],
    *,
    n_process: int,
    silent: bool,
    pipes_done: Sequence[str] = (),
    **arguments: Any,
) -> None:
    """Run the pipes that a calib pipe needs over the examples, and fit the calib pipe to them.

    n_process (int): Worker processes. silent (bool): Whether to print neither a progress bar nor warnings of gold left out.
    pipes_done (Sequence[str]): Pipes that were run over these Docs already. arguments: Further arguments of `Calibrator.fit`.
    """
    n_bins = getattr(calib.scorer, "n_bins", 10)  # also the minimum number of pairs: each bin needs one
    with share_bar(silent) as progress:
        reading, fitting = progress.parts(1, 3, stages=["Reading scores", "Fitting"])  # 1/4 and 3/4 of the bar
        reading.update(0.0)
        ready = ready_to_read(nlp, calib, examples, silent=True, n_process=n_process, pipes_done=pipes_done)
        calib.fit(reading.track(ready, len(examples)), min_pairs=n_bins, n_bins=n_bins, progress=fitting, **arguments)
    report_dropped(calib.annotation, examples, silent)


def check_fit(info: FitInfo) -> None:
    """Check a fit by its `info` before writing it. RAISES C130: cross-validated log loss clearly above that of raw scores."""
    held_out = info.held_out
    if held_out is not None and held_out.verdict == "worse":
        figures = {"n": held_out.tokens, "raw": held_out.raw, "calibrated": held_out.calibrated}
        method = info.method.split(".")[-2]  # "Isotonic" of "spacy-calib.Isotonic.v1"
        raise calib_error("C130", method=method, rows=f"{info.kind.unit}s", more="give more data", **figures)
