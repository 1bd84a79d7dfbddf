"""Model and gold -> what pipes say of it, or raw scores, judged: once for the tables, the page and the pictures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...doc.annotations import get_annotation, plain_name
from ...errors import CalibError, calib_error
from ...pipe.loading import check_readable
from ..fitting.new_calib import own_block, place_calib, ready_to_read
from ..fitting.settings import DEFAULTS, pipe_settings
from ..shared.checks import check_option
from ..shared.evidence import check_bins, unknown_sentence
from ..shared.examples import read_examples
from ..shared.run import judge, pipes_to_run
from ..shared.scored import ScoredPipe
from ..shared.screen import number, warn

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pages.judged import JudgedView
    from ...pairs.build import JudgedPairs
    from ...pipe.component import Calibrator
    from ...pipe.judging import Judged
    from ...types import Groups
    from .against import Side
    from .options import EvaluateRun

# Of the simulated noise floor and of intervals.
_SEED = 0
# Prefix of the pipe where there are others; it is never saved.
_ATTR = "raw_scores"
# What a row of the table and its parts say of calibrated scores.
_CALIBRATED = ("calibrated", "low", "high", "debiased", "true_low", "true_high")


def judge_raw(run: EvaluateRun, nlp: Language) -> tuple[Judged, list[dict[str, Any]]]:
    """(what raw scores show on the gold of a run, where conventions differ): a pipe that changes nothing is put behind the component, in memory.

    RAISES C317, C318: there is no such component. C030 to C035, C164: the gold, or the component, see `Calibrator.fit`.
    """
    from ...pipe.fitting import conventions_in
    from ...pipe.gathering import FitArguments, gather
    from ...pipe.judging import judge_unfitted

    nlp, calib = place_raw(run, nlp)
    examples = read_examples(nlp, run.data, run.gold_preproc, run.doc_key)
    done = list(ready_to_read(nlp, calib, examples, silent=run.silent, n_process=run.n_process))
    gathered = gather(calib, done, FitArguments())
    if gathered.data.n_unknown and not run.silent:
        words = gathered.data.unknown.words()
        warn(unknown_sentence(words, calib.source.component or "the source", gathered.annotation.unit))
    conventions = [convention.to_dict(gathered.labels) for convention in conventions_in(gathered)]
    return judge_unfitted(calib, gathered, done), conventions


def place_raw(run: EvaluateRun, nlp: Language) -> tuple[Language, Calibrator]:
    """The pipeline with a pipe that changes nothing. RAISES C317, C318: there is no such component."""
    from ...pipe.component import Calibrator

    others = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    own = None if any(pipe.fitted for pipe in others) else own_block(nlp, None, run.component)
    options: dict[str, Any] = {"method": "identity"}
    if own is None:
        options |= {"component": run.component or only_component(nlp), **({"attr": _ATTR} if others else {})}
    name, settings = pipe_settings(own, options)
    return place_calib(nlp, run.model, (name, {**settings, "context": None}), gold_preproc=run.gold_preproc)


def only_component(nlp: Language) -> str:
    """The component that a fit takes by itself; where the pipeline has not that one, the only one that can be calibrated."""
    from ...sources.find import readable_in

    default: str = DEFAULTS["source"]["component"]
    readable = readable_in(nlp)
    return readable[0] if default not in nlp.component_names and len(readable) == 1 else default


def without_calibrated(table: dict[str, Any]) -> dict[str, Any]:
    """A table of `evaluate` whose calibrated scores are raw ones, with nothing said of calibrated ones."""
    bare = {
        **table,
        "errors": [{**row, **dict.fromkeys(_CALIBRATED)} for row in table["errors"]],
        "scores": {key: {**row, "calibrated": None} for key, row in table["scores"].items()},
        "change": {key: dict.fromkeys(row) for key, row in table["change"].items()},
    }
    return bare if table.get("entities") is None else {**bare, "entities": without_calibrated(table["entities"])}


def verdict_on_raw(found: Judged) -> str:
    """How far raw scores are off, in one sentence; "" where there is none to judge."""
    from ...metrics.calibration_error import calibration_error
    from ...pages.verdict import leaning_in_words
    from ...pairs.build import top_pairs

    annotation, of, pairs = found.annotation, f"the likeliest label of each {found.annotation.unit}", found.tokens.pairs
    if found.spans is not None and len(found.spans) and annotation.spans_first:
        of, pairs = f"predicted {annotation.span_words[1]}", found.spans.pairs
    pairs = pairs.take(top_pairs(pairs))
    off = calibration_error(pairs.scores, pairs.hits, found.scorer.n_bins, norm="l1")
    if off is None:
        return ""
    whose = f"The scores of '{found.component}'" if found.component else "The scores"
    excess = float((pairs.scores - pairs.hits).mean())
    return f"{whose} are off by {number(off, 3)} on average, {leaning_in_words(excess, off)} ({of}, on this data)"


def fit_command(run: EvaluateRun, component: str) -> str:
    """The command that makes these scores true. component (str): Whose they are."""
    of = "" if component in ("", DEFAULTS["source"]["component"]) else f" --component {shlex.quote(component)}"
    return f"python -m spacy calib fit {shlex.quote(run.model)} dev.spacy ./calibrated{of}"


@dataclass
class Judgement:
    """What was judged.

    name, version (str): Of the pipeline, as a page calls it. judged (list[Judged]): What each pipe says.
    models (list[ScoredPipe]): What a page and pictures show of the pipes, where they are wanted. skipped (list[str]): Sentences about what
    is not judged. values (Sequence | None): Of each Doc, of the key of --by.
    fields (dict): Key of the user data -> the name that each Doc has under it; where slices are searched.
    conventions (dict): By pipe, where labels and gold look like two conventions, see `FitInfo`; without the pipes of which it is not known.
    sides (list[Side]): What fitted pipes say, for --against.
    """

    name: str
    judged: list[Judged]
    version: str = ""
    models: list[ScoredPipe] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    values: Sequence[str | None] | None = None
    fields: dict[str, list[str | None]] = field(default_factory=dict)
    conventions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sides: list[Side] = field(default_factory=list)

    def tables(self, run: EvaluateRun) -> dict[str, Any]:
        """By pipe, see `evaluate`. RAISES C005: more bins were asked for than there are pairs."""
        return {one.name: {**told_of(one, run), "conventions": self.conventions.get(one.name)} for one in self.judged}


def judgement(run: EvaluateRun, shown: bool) -> Judgement:
    """Judge what the run is about. shown (bool): Whether the scores themselves are to be shown too.

    RAISES CalibError: every fault of the input.
    """
    from ...pipe.judging import conventions_met

    nlp = run.begin(run.files())
    name, version = f"{nlp.meta['lang']}_{nlp.meta['name']}", nlp.meta["version"]
    pipes = _pipes_of(run, nlp, shown)
    if not pipes:
        raw, met = judge_raw(run, nlp)
        return Judgement(name, [raw], version, conventions={raw.name: met})
    behind = [pipes_to_run(nlp, pipe, sentences=True)[-1] for pipe in pipes] if shown else []
    judged, scored_by, done = judge(run, nlp, pipes, also=behind)
    found = Judgement(name, judged, version)
    for pipe, own, corpus in zip(pipes, judged, scored_by, strict=True):
        try:
            check_readable(nlp, pipe)
        except CalibError as error:
            found.skipped.append(f"Not judged: pipe {pipe.name}. {error.message}")
            continue
        found.conventions[pipe.name] = conventions_met(pipe, corpus)
        if run.against is not None:
            from .against import side_of

            found.sides.append(side_of(pipe, done, run.by))
        if shown:
            found.models.append(ScoredPipe(pipe, corpus, own.seen))
    if run.by is not None or run.find_slices:
        from ...doc.keys import fields_of, names_under

        references = [example.reference for example in done]
        found.values = None if run.by is None else names_under(references, run.by)
        found.fields = fields_of(references) if run.find_slices else {}
    return found


def _pipes_of(run: EvaluateRun, nlp: Language, shown: bool) -> list[Calibrator]:
    """The fitted pipes to judge; none where raw scores are.

    RAISES C027, C068: there is none with the prefix asked for, or none to show.
    """
    from ...pipe.component import Calibrator, fitted_pipes, pipes_named

    fitted = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    reading = [pipe for pipe in fitted if run.component in (None, pipe.source.component)]
    if reading or run.attr is not None:
        return [pipe for pipe in pipes_named(nlp, run.attr) if pipe in reading]
    if shown:
        fitted_pipes(nlp)
        check_option("--component", False, "one that is calibrated, to be shown on a page or in pictures", run.component)
    return []


def told_of(found: Judged, run: EvaluateRun) -> dict[str, Any]:
    """The table of one pipe, see `evaluate`; raw scores alone of one that is not fitted. RAISES C005: see `table_of`."""
    table = table_of(found, run.bins, run.groups)
    if found.fitted:
        return table
    unfitted = {"verdict": verdict_on_raw(found), "fit": fit_command(run, found.component)}
    return {**without_calibrated(table), "unfitted": unfitted}


def table_of(found: Judged, bins: int | None, groups: int | None) -> dict[str, Any]:
    """The table of one pipe, see `evaluate`. RAISES C005: more bins were asked for than there are pairs."""
    from ...metrics.table import calibration_table
    from ...pages.tag_rows import never_right
    from ...pipe.judging import event_table
    from ...pipe.registered import metrics
    from ...pipe.scorer import scorer_like
    from ...types import OPEN

    annotation, scorer, known = found.annotation, scorer_like(found.scorer, bins, groups), metrics()

    def judge_pairs(judged: JudgedPairs, own: Groups, names: Sequence[str]) -> dict[str, Any]:
        judging, n_bins = scorer.judging(own, names), scorer.n_bins
        documents = judged.documents if judged.unit else None
        table = calibration_table(judged.pairs, judged.calibrated, judging, n_bins, _SEED, documents, judged.unit, known)
        never = [] if plain_name(found.layer) in OPEN else never_right(judged, names)
        return {"bins": n_bins, **table, "never_right": never}

    if len(found.tokens):
        check_bins(len(found.tokens), bins, found.threshold)
    result = {
        "component": found.component,
        "layer": plain_name(found.layer),
        "accuracy_is": annotation.accuracy_name,
        "seen": found.seen,
        "weights_changed": found.weights_changed,
        "misaligned": found.misaligned,
        **({"without_map": dict(found.without_map)} if found.without_map else {}),
        **judge_pairs(found.tokens, found.groups, found.labels),
    }
    if found.spans is not None and found.span_groups is not None:
        result["entities"] = {
            "called": list(annotation.span_words),
            "event": found.event,
            "accepted": found.accepted,
            "flagged": found.flagged,
            **judge_pairs(found.spans, found.span_groups, found.span_labels),
        }
    if found.events:
        result["events"] = [event_table(one, bins or 10, _SEED) for one in found.events]
    return result


def judged_units(model: ScoredPipe, run: EvaluateRun) -> dict[str, JudgedView]:
    """ "tokens" (or "documents"), behind "entities" where the pipe has them -> their scores, by the groups of the fit or by as many as were asked for."""
    from ...pages.judged import judged_entities, judged_tokens
    from ...pipe.registered import metrics
    from ...pipe.scorer import scorer_like

    pipe, corpus, _ = model
    assert pipe.groups is not None
    scorer, labels = scorer_like(pipe.scorer, run.bins, run.groups), pipe.lookup.labels()
    n_bins, judging, known = scorer.n_bins, scorer.judging, metrics()
    tokens = judged_tokens(corpus, labels, judging(pipe.groups, labels), n_bins, _SEED, known)
    if pipe.spans.groups is None:
        return {tokens.kind: tokens}
    span_labels, called = pipe.lookup.span_labels(), get_annotation(pipe.fit_info.layer).span_words
    groups = judging(pipe.spans.groups, span_labels)
    return {
        "entities": judged_entities(corpus, span_labels, groups, n_bins, _SEED, known, called),
        tokens.kind: tokens,
    }


def table_of_unit(table: Mapping[str, Any], unit: str) -> Any:
    """The part of a pipe's table that is of one unit."""
    return table["entities"] if unit == "entities" else table


def nothing_to_show(found: Judgement) -> CalibError:
    """C030: no unit of any pipe has both gold and a score."""
    first = found.judged[0]
    return calib_error("C030", layer=plain_name(first.layer), component=first.component or "the source")
