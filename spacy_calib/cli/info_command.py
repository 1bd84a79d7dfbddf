"""`spacy calib info`: show the settings, groups and fit data of calibrated pipes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

from ..annotations import plain_name
from ..pairs.documents import count_in_words, extent_in_words
from ..pipe.pipeline import open_model
from .fitting.adapt_output import adaptation_line
from .fitting.conventions import show_conventions
from .fitting.fit_output import context_line, print_fit_table, show_context, show_span_context, verdict_on
from .shared.choose_pipe import choose_pipes
from .shared.command import command, option
from .shared.gold import unknown_sentence
from .shared.options import CalibratedModel, Code, Format, OnlyComponent, Silent
from .shared.screen import TableColumn, first_of, msg, number, print_facts, show_rows, whole
from .shared.writing import print_result

if TYPE_CHECKING:
    from ..pipe.component import Calibrator

_TAGS_SHOWN = 8  # number of tags of a group that are printed without --all
# Title of a column of the table of candidates -> its key in a row.
_LOSSES = {"Log loss": "loss", "From the best": "difference", "Std. error": "error"}


@command(example="./calibrated --all")
def info(
    model: CalibratedModel,
    *,
    component: OnlyComponent = None,
    everything: Annotated[bool, option("List all tags of all groups", "--all")] = False,
    format: Format = "table",
    code: Code = None,
    silent: Silent = True,
) -> dict[str, Any]:
    """Show the fitted calib pipes of a pipeline: source, groups with their tags and frequencies, method, size of the fit data,
    versions.

    RETURNS (dict): Pipe name -> settings, fit size, versions, fit table, and "groups": name, fallback, tags -> frequency.
    RAISES CalibError: any error in the input. Arguments: the annotation of each contains its help (`shared/options.py`).
    """
    nlp = open_model(model, code=code)
    pipes = choose_pipes(nlp, component, allow_many=True)
    result = {pipe.name: describe(pipe) for pipe in pipes}

    def show_all() -> None:
        for pipe in pipes:
            show_info(pipe, result[pipe.name], everything)

    print_result(result, show_all, format, silent)
    return result


def describe(pipe: Calibrator) -> dict[str, Any]:
    """Return what `info` shows of a fitted calib pipe as plain data: settings, facts of the fit (`FitInfo.state`), "groups".

    Each group has "group" (name), "fallback" (the other map it uses and why, or ""), "pairs" (number), "tags": label -> count.
    """
    from ..pipe.label_names import shown_columns, shown_keys

    groups, component_labels = pipe.groups, shown_columns(pipe)
    assert groups is not None  # the pipe is fitted
    labels = [component_labels.get(label, label) for label in pipe.labels]  # pretrained maps may have other names
    group_rows = [
        {
            "group": row.group,
            "fallback": row.fallback,
            "pairs": row.pairs,
            "tags": {labels[tag]: int(groups.counts[tag]) for tag in groups.tags_in(index)},
        }
        for index, row in enumerate(pipe.fit_info.table[1:])  # the first row is for all labels together
    ]
    settings = {
        "attr": pipe.attr,
        "normalize": pipe.normalize,
        "source": pipe.source.settings_summary,
        "source_found": pipe.lookup.component() is not None,
        "weights_changed": pipe.lookup.weights_changed(),
        "cutoffs": None if pipe.spans.cutoffs is None else pipe.spans.cutoffs.state(),
        "promise": None if pipe.spans.cutoffs is None else pipe.spans.cutoffs.promise(shown_keys(pipe)) or None,
        "label_cutoffs": None if pipe.tokens.label_cutoffs is None else pipe.tokens.label_cutoffs.state(),
        "recall_cutoffs": None if pipe.tokens.recall_cutoffs is None else pipe.tokens.recall_cutoffs.state(),
    }
    return {**settings, **pipe.fit_info.state(), "groups": group_rows}


def show_info(pipe: Calibrator, description: dict[str, Any], everything: bool) -> None:
    """Print the facts and tables of a calib pipe. description: From `describe`. everything: Whether groups list all labels."""
    info = pipe.fit_info
    msg.divider(pipe.name)
    if verdict := verdict_on(info):
        msg.text(f"{verdict}.")
    if info.unknown is not None:
        sentence = unknown_sentence(info.unknown, info.component or "the source", info.kind.unit, details=True)
        msg.text(f"{sentence}.")
    print_facts({**_token_facts(pipe, description), **_span_facts(pipe, description)})
    for group in description["groups"]:
        tags = [f"{tag} {count:,}" for tag, count in group["tags"].items()]
        singular, plural = info.kind.label_words
        word = singular if len(tags) == 1 else plural
        shown_tags = first_of(tags, len(tags) if everything else _TAGS_SHOWN, " · ")
        msg.text(f"Group {group['group']} ({len(tags):,} {word}): {shown_tags}")
    show_conventions(info.conventions)
    if info.selection:
        show_selection(info.selection)
    if info.context:
        show_context(info.context)
        show_span_context(None if info.spans is None else info.spans.context, info.kind.span_words[1])
    if info.docs:
        print_fit_table(info)


def _token_facts(pipe: Calibrator, description: dict[str, Any]) -> dict[str, Any]:
    """Return {title: text} of the facts about a pipe, its fit and its scores of tokens. description: From `describe`."""
    info = pipe.fit_info
    whereabouts = "" if description["source_found"] else ", not in the pipeline"
    weights = {None: "not known", True: "OTHER THAN AT THE FIT: fit the pipe again", False: "those of the fit"}
    facts = {
        **pretrained_lines(pipe),
        "Component": f"{info.component or '-'} ({plain_name(info.layer)}){whereabouts}",
        "Weights": weights[description["weights_changed"]],
        "Attributes": attributes_of(pipe),
        **_label_lines(pipe),
        "Scaling": _scaling_line(info.scaling),
        "Method": pipe.learned.method,
        "Tag offsets": _offsets_line(info.tag_offsets),
        "Context": context_line(info.context),
        **shrinkage_line(pipe),
        "Threshold": info.threshold,
        "Normalized": "yes" if pipe.normalize else "",
        "Fitted on": f"{extent_in_words(info.unit, info.docs, info.kind.unit, info.tokens)}, {info.pairs:,} pairs",
        "Frequencies": f"counted on {info.counted_on}",
        "Versions": ", ".join(f"{package} {version}" for package, version in info.versions.items()),
        "Scores": description["source"],
    }
    for index, adaptation in enumerate(info.adaptations, 1):
        title = f"Adapted to ({index})" if len(info.adaptations) > 1 else "Adapted to"
        facts[title] = adaptation_line(adaptation, info.kind.unit)
    return facts | {"Cut-offs": _cutoffs_line(description["label_cutoffs"], "precision", ".4f")}


def _span_facts(pipe: Calibrator, description: dict[str, Any]) -> dict[str, Any]:
    """Return {title: text} about the scores of entities or other spans; {} for a pipe without. description: From `describe`."""
    info = pipe.fit_info
    if not info.spans:
        return {}
    plural = info.kind.span_words[1]
    facts = {
        f"Context of {plural}": context_line(info.spans.context),
        plural.capitalize(): f"{info.spans.spans:,} predicted, event: {info.spans.event}",
        "Promise": description["promise"],
        "Flagged from": _cutoffs_line(description["recall_cutoffs"], "recall", ".3g"),
    }
    if not info.is_of_card(pipe.spans.cutoffs):  # the cut-off of a card has a line of its own
        facts["Cut-offs"] = _cutoffs_line(description["cutoffs"], "precision", ".4f")
    return facts


def _label_lines(pipe: Calibrator) -> dict[str, str]:
    """Return {title: text} of two facts: labels with another name in the gold of the fit, and labels without scores."""
    from ..pipe.label_names import shown_names

    names = shown_names(pipe)  # label -> name in the gold, "" for a label without scores
    renamed_labels = [f"{label}={name}" for label, name in names.items() if name not in ("", label)]
    without_scores = [label for label, name in names.items() if not name]
    return {"Labels called": ", ".join(renamed_labels), "Without scores": ", ".join(without_scores)}


def attributes_of(pipe: Calibrator) -> str:
    """Return a text that lists the attributes that a calib pipe writes: "Token._.calib_score, _raw, _scores; Doc._.calib"."""
    attr, kind = pipe.attr, pipe.fit_info.kind
    if kind.of_documents:
        return f"Doc._.{attr}_score, _raw, _cats, _cats_raw, _accept; Doc._.{attr}"
    span_attributes = f"Span._.{attr}_score, _raw, _accept" if pipe.fit_info.spans or kind.of_links else ""
    span_attributes += ", _link, _links" if kind.of_links else ""
    parts = [f"Token._.{attr}_score, _raw, _scores", f"Doc._.{attr}", span_attributes]
    if pipe.of_entities and not pipe.token_scores:
        token_attributes = f"Token._.{attr}_flag" if pipe.tokens.recall_cutoffs else ""
        parts = [span_attributes, token_attributes, f"Doc._.{attr}"]
    return "; ".join(filter(None, parts))


def pretrained_lines(pipe: Calibrator) -> dict[str, str]:
    """Return {title: text} of the origin, licence, trust and cut-off (if used) of a pretrained calibration; {} after a fit."""
    card = pipe.fit_info.pretrained
    if card is None:
        return {}
    transfer_note = f", transferred: fitted on the scores of {card['pipeline']}" if card["transferred"] else ""
    in_use = pipe.fit_info.is_of_card(pipe.spans.cutoffs)
    cutoff = {"Cut-off of card": card_cutoff_line(card["cutoff"])} if in_use else {}
    return {"Pretrained": f"card {card['card']} ({card['licence']}){transfer_note}", "Trust": card["trust"], **cutoff}


def card_cutoff_line(cutoff: Mapping[str, float]) -> str:
    """Describe in words a cut-off of a pretrained card, from `Card.choose_cutoff`: its score, precision, and share accepted."""
    return (
        f"{cutoff['cutoff']:.2f} for all labels, for precision {cutoff['precision']:.2f}; on left-out sources: mean precision "
        f"{cutoff['mean']:.2f}, worst {cutoff['worst']:.2f}, share of right entities accepted {cutoff['kept']:.2f}"
    )


def shrinkage_line(pipe: Calibrator) -> dict[str, str]:
    """Return {"Shrunk": text on how far the context moves scores towards Platt-scaled raw scores}; {} if it does not."""
    from ..calibration.conventions import Shrinkage

    shrinkage = None if pipe.tokens.context is None else pipe.tokens.context.shrinkage
    if not isinstance(shrinkage, Shrinkage):
        return {}
    slope, constant = shrinkage.line.tolist()
    distance = f"{shrinkage.shrink:g} of the way, in log-odds, to a line through the raw scores"
    return {"Shrunk": f"{distance} ({slope:.3g} times, {constant:+.3g})"}


def show_selection(selection: Mapping[str, Any]) -> None:
    """Print the candidates that cross-validation compared, and which were left out. selection: `fit_info.selection`."""
    msg.divider(f"Chosen by cross-validation over {count_in_words('document', selection['documents'])}")
    chosen = selection["chosen"]
    columns = (
        TableColumn("Candidate", "candidate", lambda name: f"{name} (chosen)" if name == chosen else name, "l", 46),
        TableColumn("Size", "size", whole),
        *(TableColumn(title, key, partial(number, digits=5)) for title, key in _LOSSES.items()),
    )
    show_rows(selection["trials"], columns)
    msg.text("The best one is chosen; raw scores only if they are better by more than one standard error.")
    for why, rows in groupby(selection["left_out"], itemgetter("why")):
        msg.text(f"Not compared: {'; '.join(row['candidate'] for row in rows)} ({why})")


def _offsets_line(tag_offsets: Mapping[str, float | None] | None) -> str:
    """Describe the strength of the L2 penalty on the offsets of tags and of groups (None: they are 0); "" without offsets."""
    if tag_offsets is None:
        return ""
    strengths = {"of tags": tag_offsets["strength"], "of groups": tag_offsets["group_strength"]}
    texts = [f"{name} {strength:.3g}" for name, strength in strengths.items() if strength is not None]
    return f"strength {', '.join(texts)}" if texts else "no effect here"


def _scaling_line(scaling: Mapping[str, Any] | None) -> str:
    """Describe `fit_info.scaling` by its name, its temperature, and its number of parameters ("size"); "" for None."""
    if scaling is None:
        return ""
    temperature = "" if scaling["temperature"] is None else f"temperature {scaling['temperature']:.3g}, "
    return f"{scaling['name']} ({temperature}{scaling['size']:,} numbers)"


def _cutoffs_line(state: dict[str, Any] | None, target: str, digits: str) -> str:
    """Describe the `state` of cut-offs; "" for None. target (str): "precision" or "recall". digits (str): Format, ".4f"."""
    if state is None:
        return ""
    cutoffs = [f"{key} {'-' if cutoff is None else format(cutoff, digits)}" for key, cutoff in state["cutoffs"].items()]
    return f"{', '.join(cutoffs)} ({target} {state[target]:g}, confidence {state['confidence']:g})"
