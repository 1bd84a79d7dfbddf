"""Which calib pipe a command is about: by option, else by what the gold, the unit or the cut-offs are of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import calib_error
from .screen import inform

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator


@dataclass(frozen=True)
class Candidate:
    """A fitted pipe. units (Sequence[str]): What it scores, its own unit first. gold (str): What its gold is called."""

    name: str
    attr: str
    component: str
    units: Sequence[str] = ("token",)
    gold: str = "tag"

    def option(self, others: Iterable[Candidate]) -> str:
        """Return the option that chooses this pipe among others: by its component, else by its prefix."""
        shared = not self.component or any(other.component == self.component for other in others if other is not self)
        return f"--attr {self.attr}" if shared else f"--component {self.component}"


@dataclass(frozen=True)
class Choice:
    """The chosen pipes. why (str): The reason, where none of the options chose; "" where there was nothing to choose."""

    pipes: Sequence[Candidate]
    why: str = ""


def choose(
    pipes: Sequence[Candidate],
    component: str | None = None,
    attr: str | None = None,
    *,
    with_gold: Collection[str] | None = None,
    unit: str | None = None,
    flag: str = "--unit",
    several: bool = False,
) -> Choice:
    """Choose by the options, else by the evidence.

    with_gold (Collection[str] | None): Names of the pipes that DATA has gold for; None where DATA is no gold. unit (str | None): What
    is asked about. flag (str): The option that asks about it. several (bool): Whether the command takes all that are possible.
    RAISES C068: no pipe with this prefix. C079: none of this component. C077: several are possible. C078: no gold for any of them.
    """
    named = [pipe for pipe in pipes if attr in (None, pipe.attr)]
    if not named:
        raise calib_error("C068", attr=attr, available=", ".join(pipe.attr for pipe in pipes))
    chosen = [pipe for pipe in named if component in (None, pipe.component)]
    if not chosen:
        owner = "" if attr is None else f" with the prefix '{attr}'"
        calibrated = ", ".join(pipe.component or "the source" for pipe in named)
        raise calib_error("C079", component=component, owner=owner, available=calibrated)
    if len(chosen) == 1:
        return Choice(chosen)
    possible, reasons = chosen, []
    if with_gold is not None:
        chosen = [pipe for pipe in chosen if pipe.name in with_gold]
        if not chosen:
            known = ", ".join(f"{pipe.gold} for {pipe.component or 'the source'}" for pipe in possible)
            raise calib_error("C078", available=known)
        reasons.append("The gold is")
    if unit is not None and len(chosen) > 1:
        own = [pipe for pipe in chosen if pipe.units[0] == unit]
        chosen = own or [pipe for pipe in chosen if unit in pipe.units] or chosen
        reasons.append(f"{flag} {unit} is" if flag == "--unit" else f"{flag} is")
    left_out = [f"'{pipe.name}' ({pipe.gold} of '{pipe.component or 'the source'}')" for pipe in possible if pipe not in chosen]
    if several and left_out:
        return Choice(chosen, f"The data has no gold that concerns {' or '.join(left_out)}: left out")
    if several:
        return Choice(chosen)
    if len(chosen) == 1:
        (pipe,) = chosen
        others = " and ".join(f"{other.option(pipes)} for '{other.name}'" for other in pipes if other is not pipe)
        of = pipe.component or "the source"
        return Choice(chosen, f"{reasons[-1]} of '{of}', so the pipe is '{pipe.name}' ({others})")
    options = " or ".join(f"{pipe.option(pipes)} ({pipe.gold})" for pipe in chosen)
    raise calib_error("C077", names=" and ".join(f"'{pipe.name}'" for pipe in chosen), options=options)


def choose_pipes(
    nlp: Language,
    component: str | None = None,
    attr: str | None = None,
    *,
    gold: Sequence[Example] | None = None,
    needs_gold: bool = False,
    only: Callable[[Calibrator], bool] | None = None,
    unit: str | None = None,
    flag: str = "--unit",
    several: bool = False,
    silent: bool = True,
) -> list[Calibrator]:
    """Choose among the fitted pipes of a pipeline, and report the reason in one line, see `choose`.

    gold (Sequence[Example] | None): That of DATA. needs_gold (bool): Whether DATA has to be gold. only (Callable): Whether a command can
    use a pipe: without options the others are not looked at. RAISES C027: there is no fitted pipe. C068, C077 to C079: see `choose`.
    """
    from ...annotations import plain_name
    from ...pipe.component import fitted_pipes, units_of

    fitted = fitted_pipes(nlp)
    useful = [pipe for pipe in fitted if only(pipe)] if only is not None and component is attr is None else []
    pipes = {pipe.name: pipe for pipe in useful or fitted}
    candidates = [
        Candidate(name, pipe.attr, pipe.source.component, units_of(pipe), plain_name(pipe.fit_info.layer))
        for name, pipe in pipes.items()
    ]
    with_gold = None if gold is None or len(pipes) == 1 else names_with_gold(pipes.values(), gold)
    if not needs_gold:
        with_gold = with_gold or None
    choice = choose(candidates, component, attr, with_gold=with_gold, unit=unit, flag=flag, several=several)
    if choice.why and not silent:
        inform(f"{choice.why}.")
    return [pipes[candidate.name] for candidate in choice.pipes]


def names_with_gold(pipes: Iterable[Calibrator], examples: Sequence[Example]) -> list[str]:
    """Return the names of the pipes that gold is about: those that know a label of it; where none does, those with any."""
    from ...annotations import get_annotation, has_gold, plain_name
    from ...types import OPEN, OUTSIDE

    docs = [example.reference for example in examples]
    with_any, known = [], []
    for pipe in pipes:
        annotation = get_annotation(pipe.fit_info.layer)
        if not any(has_gold(annotation, doc) for doc in docs):
            continue
        with_any.append(pipe.name)
        labels = {*pipe.lookup.labels(), *pipe.lookup.span_labels()} - {OUTSIDE, *annotation.no_label_names}
        rejected = {span.label_ for doc in docs for span in doc.spans.get(annotation.rejected_key, ())}
        gold_labels = {*annotation.count(docs), *annotation.count_spans(docs), *rejected}
        if annotation.any_label or plain_name(pipe.fit_info.layer) in OPEN or labels & gold_labels:
            known.append(pipe.name)
    return known or with_any
