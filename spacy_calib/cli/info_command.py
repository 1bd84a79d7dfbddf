"""`spacy calib info`: what the fitted pipes of a pipeline hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..pairs.documents import DOCUMENT, LABEL_WORDS, counted
from ..pipe.loading import open_model
from .fitting.adapt_output import adaptation_line
from .fitting.conventions import show_conventions
from .fitting.fit_output import (
    context_line,
    name_tags,
    print_fit_tables,
    show_context,
    show_span_context,
    verdict_on,
    words_of_spans,
)
from .shared.command import command, option
from .shared.evidence import unknown_sentence
from .shared.options import CalibratedModel, Code, ForceFile, Format, OnlyAttr, OnlyComponent, Silent
from .shared.outputs import check_files, wanted_output
from .shared.score_readers import show_info
from .shared.screen import Column, first_of, msg, number, print_table, show_rows, whole
from .shared.which import choose_pipes
from .shared.writing import deliver

if TYPE_CHECKING:
    from ..pipe.component import Calibrator
    from ..pipe.fit_info import FitInfo

_NAMES_SHOWN = 8
_LOSSES = {"Log loss": "loss", "From the best": "difference", "Std. error": "error"}


@command(example="./calibrated --all")
def info(
    model: CalibratedModel,
    *,
    component: OnlyComponent = None,
    attr: OnlyAttr = None,
    output: Annotated[Path | None, option("JSON file for what is shown", "-o")] = None,
    everything: Annotated[bool, option("Name every tag of every group", "--all", "--all-tags")] = False,
    format: Format = "table",
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Show what the fitted calib pipes of a pipeline hold: source, groups with
    their tags and frequencies, method, size of the fit data, versions.

    RETURNS (dict): By pipe name: settings, fit size, versions, fit table, and "groups": name, fallback, tags -> frequency; "events" where
        other pipes read its scores: what each learned, None where it does not say.
    RAISES CalibError: every fault of the input.
    """
    from ..pipe.score_readers import info_of, score_readers

    check_files(wanted_output(output), force, inputs=[code], model=model)
    nlp = open_model(model, code=code)
    pipes = choose_pipes(nlp, component, attr, several=True)
    result = {pipe.name: describe(pipe) for pipe in pipes}
    readers = {pipe.name: score_readers(nlp, pipe.attr) for pipe in pipes}
    for name, by_name in readers.items():
        if by_name:
            result[name]["events"] = {reader_name: info_of(reader) for reader_name, reader in by_name.items()}

    def show_all() -> None:
        for pipe in pipes:
            show(pipe, result[pipe.name], everything)
            for name, reader in readers[pipe.name].items():
                show_info(name, reader)

    deliver(result, show_all, output=output, format=format, silent=silent)
    return result


def _first(names: Sequence[str], everything: bool, separator: str = ", ") -> str:
    return first_of(names, len(names) if everything else _NAMES_SHOWN, separator)


def describe(pipe: Calibrator) -> dict[str, Any]:
    """What one pipe holds, as plain data."""
    from ..pipe.label_names import shown_columns

    groups, shown = pipe.groups, shown_columns(pipe)
    assert groups is not None
    state = [
        {
            "group": row.group,
            "fallback": row.fallback,
            "pairs": row.pairs,
            "tags": {shown.get(pipe.labels[i], pipe.labels[i]): int(groups.counts[i]) for i in groups.tags_in(index)},
        }
        for index, row in enumerate(pipe.fit_info.table[1:])
    ]
    settings = {
        "attr": pipe.attr,
        "normalize": pipe.normalize,
        "source": pipe.source.settings_summary,
        "source_found": pipe.lookup.component() is not None,
        "weights_changed": pipe.lookup.weights_changed(),
        "cutoffs": None if pipe.spans.cutoffs is None else pipe.spans.cutoffs.state(),
        "label_cutoffs": None if pipe.tokens.label_cutoffs is None else pipe.tokens.label_cutoffs.state(),
        "recall_cutoffs": None if pipe.tokens.recall_cutoffs is None else pipe.tokens.recall_cutoffs.state(),
    }
    return {**settings, **pipe.fit_info.state(), "groups": state}


def show(pipe: Calibrator, description: dict[str, Any], everything: bool) -> None:
    """Print what one pipe holds. description (dict): What `describe` gave."""
    from ..annotations import plain_name
    from ..pairs.documents import extent

    info = pipe.fit_info
    msg.divider(pipe.name)
    fact = [verdict_on(info)]
    if info.unknown is not None:
        fact.append(unknown_sentence(info.unknown, info.component or "the source", info.row_unit, details=True))
    for sentence in filter(None, fact):
        msg.text(f"{sentence}.")
    facts = {
        **pretrained_line(info),
        "Component": f"{info.component or '-'} ({plain_name(info.layer)})"
        + ("" if description["source_found"] else ", not in the pipeline"),
        "Weights": {None: "not known", True: "OTHER THAN AT THE FIT: fit the pipe again", False: "those of the fit"}[
            description["weights_changed"]
        ],
        "Attributes": attributes_of(pipe),
        **_label_lines(pipe),
        "Scaling": _scaling_line(info.scaling),
        "Method": info.method,
        "Tag offsets": _offsets_line(info.pooling),
        "Context": context_line(info.context),
        **shrinkage_line(pipe),
        "Threshold": info.threshold,
        "Normalized": {False: "no", True: "yes", "other": "other"}[pipe.normalize],
        "Sets": _sets_line(info.sets, f"{info.row_unit}s"),
        "Fitted on": f"{extent(info.unit, info.docs, info.row_unit, info.tokens)}, {info.pairs:,} pairs",
        "Frequencies": f"counted on {info.counted_on}",
        "Versions": ", ".join(f"{package} {version}" for package, version in info.versions.items()),
    }
    if description["source"]:
        facts["Scores"] = description["source"]
    for number_of, adaptation in enumerate(info.adaptations, 1):
        facts[f"Adapted to ({number_of})" if len(info.adaptations) > 1 else "Adapted to"] = adaptation_line(
            adaptation, info.row_unit
        )
    if description["label_cutoffs"] is not None:
        facts["Cut-offs"] = _cutoffs_line(description["label_cutoffs"], "precision", ".4f")
    if info.spans:
        plural = words_of_spans(info)[1]
        facts[f"Context of {plural}"] = context_line(info.spans.context)
        facts[plural.capitalize()] = f"{info.spans.spans:,} found, event: {info.spans.event}"
        facts["Cut-offs"] = _cutoffs_line(description["cutoffs"], "precision", ".4f")
        facts["Flagged from"] = _cutoffs_line(description["recall_cutoffs"], "recall", ".3g")
    print_table(facts)
    for group in description["groups"]:
        tags = [f"{tag} {count:,}" for tag, count in group["tags"].items()]
        msg.text(
            f"Group {group['group']} ({len(tags):,} {LABEL_WORDS[info.row_unit][len(tags) != 1]}): {_first(tags, everything, ' · ')}"
        )
    show_conventions(info.conventions)
    if info.selection:
        show_selection(info.selection)
    if info.context:
        show_context(info.context)
        show_span_context(None if info.spans is None else info.spans.context, words_of_spans(info)[1])
    if info.docs:
        print_fit_tables(info)


def _label_lines(pipe: Calibrator) -> dict[str, str]:
    """What labels are called, where the gold of the fit had other names, and which have no scores."""
    from ..pipe.label_names import shown_names

    names = shown_names(pipe)
    called = [f"{label}={name}" for label, name in names.items() if name not in ("", label)]
    without_scores = [label for label, name in names.items() if not name]
    lines = {"Labels called": ", ".join(called) or "as in the component"}
    return {**lines, "Without scores": ", ".join(without_scores)} if without_scores else lines


def attributes_of(pipe: Calibrator) -> str:
    """The attributes that a pipe writes."""
    from ..annotations import get_annotation

    attr = pipe.attr
    if pipe.fit_info.row_unit == DOCUMENT:
        return f"Doc._.{attr}_score, _raw, _cats, _cats_raw, _set; Doc._.{attr}"
    links = get_annotation(pipe.fit_info.layer).spans_are_units
    of_spans = f"; Span._.{attr}_score, _raw, _accept" if pipe.fit_info.spans or links else ""
    of_spans += ", _link, _links" if links else ""
    if pipe.of_entities and not pipe.token_scores:
        of_tokens = "; ".join(
            f"Token._.{attr}_{name}" for name, made in (("set", pipe.tokens.sets), ("flag", pipe.tokens.recall_cutoffs)) if made
        )
        return "; ".join(filter(None, (of_spans.removeprefix("; "), of_tokens, f"Doc._.{attr}")))
    return f"Token._.{attr}_score, _raw, _scores, _set; Doc._.{attr}{of_spans}"


def pretrained_line(info: FitInfo) -> dict[str, str]:
    """The card that a pretrained calibration comes from, as one fact; {} after a fit."""
    card = info.pretrained
    if card is None:
        return {}
    transferred = f", transferred: fitted on the scores of {card['pipeline']}" if card["transferred"] else ""
    cutoff = {"Cut-off of card": card_cutoff_line(card["cutoff"])} if card["cutoff"] else {}
    return {"Pretrained": f"card {card['card']} ({card['licence']}){transferred}", "Trust": card["trust"], **cutoff}


def card_cutoff_line(cutoff: Mapping[str, float]) -> str:
    """The cut-off of a card, and what it reaches on the sources left out."""
    return (
        f"{cutoff['cutoff']:.2f} for all labels, for precision {cutoff['precision']:.2f}: of what it accepts on the sources left "
        f"out {cutoff['mean']:.2f} is right in the mean, {cutoff['worst']:.2f} on the worst; it accepts {cutoff['kept']:.2f} of what is right"
    )


def shrinkage_line(pipe: Calibrator) -> dict[str, str]:
    """How far scores shrink, and to which line, as one fact; {} where they do not."""
    from ..calibration.conventions import Shrinkage

    shrinkage = None if pipe.tokens.context is None else pipe.tokens.context.shrinkage
    if not isinstance(shrinkage, Shrinkage):
        return {}
    slope, constant = shrinkage.line.tolist()
    way = f"{shrinkage.shrink:g} of the way, in log-odds, to a line through the raw scores"
    return {"Shrunk": f"{way} ({slope:.3g} times, {constant:+.3g})"}


def show_selection(selection: Mapping[str, Any]) -> None:
    """Print the candidates that were compared, the best first."""
    msg.divider(f"Chosen by cross-validation over {counted('document', selection['documents'])}")
    columns = (
        Column("Candidate", "candidate", lambda name: f"{name} (chosen)" if name == selection["chosen"] else name, "l"),
        Column("Size", "size", whole),
        *(Column(title, key, partial(number, digits=5)) for title, key in _LOSSES.items()),
    )
    show_rows(selection["trials"], columns)
    msg.text("The best is taken; raw scores only where they are better by more than one standard error.")
    for why, rows in groupby(selection["left_out"], itemgetter("why")):
        msg.text(f"Not compared: {'; '.join(row['candidate'] for row in rows)} ({why})")


def _offsets_line(pooling: Mapping[str, float | None] | None) -> str:
    if pooling is None:
        return "none"
    return "of no use here" if pooling["strength"] is None else f"strength {pooling['strength']:.3g}"


def _scaling_line(scaling: Mapping[str, Any] | None) -> str:
    if scaling is None:
        return "none"
    temperature = "" if scaling["temperature"] is None else f"temperature {scaling['temperature']:.3g}, "
    return f"{scaling['name']} ({temperature}{scaling['size']:,} numbers)"


def _sets_line(sets: Mapping[str, Any] | None, rows: str) -> str:
    if sets is None:
        return "none"
    line = f"{100 * (1 - sets['alpha']):g} % of {rows}, coverage: {sets['coverage']}"
    if sets["unreached"]:
        line += f"; no promise for {len(sets['unreached'])} tags: {name_tags(sets['unreached'])}"
    elif sets["out_of_reach"]:
        line += f"; no promise for {number(100 * sets['out_of_reach'], 1)} % of the fit {rows}"
    if sets["empty"]:
        content = "hold the likeliest tag alone" if sets["nonempty"] else "are empty"
        line += f"; the sets of {number(100 * sets['empty'], 1)} % of the fit {rows} {content}"
    return line


def _cutoffs_line(cutoffs: dict[str, Any] | None, target: str, digits: str, pretrained: Mapping[str, Any] | None = None) -> str:
    """target (str): What they reach, "precision" or "recall". digits (str): How a cut-off is written. pretrained: Of cut-offs of a card."""
    if pretrained is not None:
        return card_cutoff_line(pretrained["cutoff"])
    if cutoffs is None:
        return "none; see `spacy calib threshold`"
    cutoff_texts = ", ".join(
        f"{key} {'-' if value is None else format(value, digits)}" for key, value in cutoffs["cutoffs"].items()
    )
    return f"{cutoff_texts} ({target} {cutoffs[target]:g}, confidence {cutoffs['confidence']:g})"
