"""Choose the calib pipes of a command: by --component, else by the gold in the data and the requested unit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...annotations import get_annotation, has_gold, plain_name
from ...errors import calib_error
from ...pipe.pipeline import fitted_pipes, units_of
from ...types import OPEN, OUTSIDE
from .screen import inform

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator


@dataclass(frozen=True)
class Candidate:
    """A fitted calib pipe to choose from.

    name, attr, component (str): Its name, its prefix, and the component that it calibrates. units (Sequence[str]): What it
    scores, the default first. gold (str): The annotation that its gold needs, such as "tag".
    """

    name: str
    attr: str
    component: str
    units: Sequence[str] = ("token",)
    gold: str = "tag"

    @property
    def owner(self) -> str:
        """Name of the component; "the source" for a pipe of user code, whose source reads none."""
        return self.component or "the source"

    def option(self, pipes: Iterable[Candidate]) -> str:
        """Return the option that chooses this pipe among `pipes`: its component if no other pipe has that, else its prefix."""
        is_ambiguous = not self.component or any(pipe.component == self.component for pipe in pipes if pipe is not self)
        return f"--component {self.attr if is_ambiguous else self.component}"


def choose(
    pipes: Sequence[Candidate],
    component: str | None = None,
    *,
    with_gold: Collection[str] | None = None,
    unit: str | None = None,
    flag: str = "--unit",
    allow_many: bool = False,
) -> tuple[list[Candidate], str]:
    """Choose among fitted pipes by their component or prefix, else by the gold and the unit; return (chosen, reason).

    component (str | None): What a pipe calibrates, or else its prefix. with_gold (Collection[str] | None): Names of the pipes
    that DATA has gold for; None if DATA is no gold. unit (str | None): What is to be scored, such as "entity". flag (str): Its
    option. allow_many (bool): Whether several may be returned. The reason is a sentence if gold or unit decided, else "".
    RAISES C079: no pipe has this component or prefix. C077: several are possible. C078: DATA has gold for none.
    """
    named = [pipe for pipe in pipes if component in (None, pipe.component)]
    named = named or [pipe for pipe in pipes if pipe.attr == component]
    if not named:
        raise calib_error("C079", component=component, available=", ".join(f"{pipe.owner} ({pipe.attr})" for pipe in pipes))
    if len(named) == 1:
        return named, ""
    chosen, evidence = named, ""  # evidence: the beginning of the reason
    if with_gold is not None:
        chosen, evidence = [pipe for pipe in named if pipe.name in with_gold], "The gold is"
        if not chosen:
            raise calib_error("C078", available=", ".join(f"{pipe.gold} for {pipe.owner}" for pipe in named))
    if unit is not None and len(chosen) > 1:
        with_default_unit = [pipe for pipe in chosen if pipe.units[0] == unit]
        chosen = with_default_unit or [pipe for pipe in chosen if unit in pipe.units] or chosen
        evidence = f"{flag} {unit} is" if flag == "--unit" else f"{flag} is"
    if allow_many:
        left_out = " and ".join(f"'{pipe.name}' ({pipe.gold} of '{pipe.owner}')" for pipe in named if pipe not in chosen)
        return chosen, f"Left out, as the data has no gold for it: {left_out}" if left_out else ""
    if len(chosen) > 1:
        options = " or ".join(f"{pipe.option(pipes)} ({pipe.gold})" for pipe in chosen)
        raise calib_error("C077", names=" and ".join(f"'{pipe.name}'" for pipe in chosen), options=options)
    others = " and ".join(f"{pipe.option(pipes)} for '{pipe.name}'" for pipe in pipes if pipe not in chosen)
    return chosen, f"{evidence} for '{chosen[0].owner}', so the pipe is '{chosen[0].name}' ({others})"


def choose_pipes(
    nlp: Language,
    component: str | None = None,
    *,
    gold: Sequence[Example] | None = None,
    needs_gold: bool = False,
    is_useful: Callable[[Calibrator], bool] | None = None,
    unit: str | None = None,
    flag: str = "--unit",
    allow_many: bool = False,
    silent: bool = True,
) -> list[Calibrator]:
    """Choose among the fitted calib pipes of a pipeline as `choose` does, and print the reason in one line unless silent.

    gold (Sequence[Example] | None): Examples of DATA. needs_gold (bool): Whether DATA has to be gold. is_useful (Callable):
    Returns whether a command can use a pipe; without `component` such pipes are preferred to all others. component, unit,
    flag, allow_many: As for `choose`. RAISES C027: no fitted pipe. C077 to C079: as `choose`.
    """
    all_pipes = fitted_pipes(nlp)
    useful = [pipe for pipe in all_pipes if is_useful(pipe)] if is_useful is not None and component is None else []
    pipes = {pipe.name: pipe for pipe in useful or all_pipes}
    candidates = [
        Candidate(name, pipe.attr, pipe.source.component, units_of(pipe), plain_name(pipe.fit_info.layer))
        for name, pipe in pipes.items()
    ]
    with_gold = None if gold is None or len(pipes) == 1 else names_with_gold(pipes.values(), gold)
    if not with_gold and not needs_gold:  # gold that decides nothing counts as no gold
        with_gold = None
    chosen, reason = choose(candidates, component, with_gold=with_gold, unit=unit, flag=flag, allow_many=allow_many)
    if reason and not silent:
        inform(f"{reason}.")
    return [pipes[candidate.name] for candidate in chosen]


def names_with_gold(pipes: Iterable[Calibrator], examples: Sequence[Example]) -> list[str]:
    """Return the names of the pipes that know a label of the gold; if none does, of those whose annotation the gold has."""
    docs = [example.reference for example in examples]
    with_annotation, with_label = [], []
    for pipe in pipes:
        annotation = get_annotation(pipe.fit_info.layer)
        if not any(has_gold(annotation, doc) for doc in docs):
            continue
        with_annotation.append(pipe.name)
        labels = {*pipe.lookup.labels(), *pipe.lookup.span_labels()} - {OUTSIDE, *annotation.kind.no_label_names}
        rejected_labels = {span.label_ for doc in docs for span in doc.spans.get(annotation.kind.rejected_key, ())}
        gold_labels = {*annotation.count_gold(docs), *annotation.count_spans(docs), *rejected_labels}
        # Labels are not compared if only heads are evaluated, or if they differ from unit to unit (lemmas).
        takes_any_label = annotation.kind.any_label or plain_name(pipe.fit_info.layer) in OPEN
        if takes_any_label or labels & gold_labels:
            with_label.append(pipe.name)
    return with_label or with_annotation
