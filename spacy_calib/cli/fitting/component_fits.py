"""The fits of one or several components in one run: the new pipe of each, and what is written of it in the end."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...calibration.replacement import FIT
from ...pipe.label_names import maps_on
from ..shared.command import check_option
from ..shared.evidence import is_gold_of
from ..shared.examples import read_examples
from ..shared.screen import inform
from ..shared.which import names_with_gold
from .comparison import FitOutcome, PresentPipe
from .new_calib import block_to_fit, place_calib, with_inline_recognizers
from .settings import DEFAULTS, Block, translate_options

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator


@dataclass(eq=False)
class ComponentFit:
    """The fit of one component.

    name (str): Of the new pipe. own (str | None): The pipe whose settings were taken over. present (PresentPipe | None): The calibration
    that it may replace. other_names (Sequence): What fitted pipes of the pipeline call the labels of this component.
    outcome (FitOutcome | None): Of their comparison.
    """

    name: str
    own: str | None
    present: PresentPipe | None
    other_names: Sequence[Mapping[str, str]] = ()
    outcome: FitOutcome | None = None

    @property
    def is_written(self) -> bool:
        """Whether the new fit is written, not the calibration that was there."""
        return self.outcome is None or self.outcome.written == FIT

    def compare(self, calib: Calibrator, examples: Sequence[Example], **options: Any) -> None:
        """Compare with the calibration that it may replace; options: see `PresentPipe.compare`."""
        self.outcome = None if self.present is None else self.present.compare(calib, examples, **options)


def check_components(
    component: str | Sequence[str] | None, of_one: Mapping[str, Any], overrides: Mapping[str, Any] | None
) -> list[str]:
    """Return the components that are asked for. RAISES C056: an empty name, or an option of one component beside several."""
    components = list(dict.fromkeys([component] if isinstance(component, str) else component or ()))
    for name in components:
        translate_options({"component": name})
    settings = {f"--{setting}": value for setting, value in (overrides or {}).items()}
    for name, value in {**of_one, **settings}.items() if len(components) > 1 else ():
        wanted = "left out beside several --component (it is of one: fit that one alone)"
        check_option(name, value is None, wanted, "it" if value is True else value)
    return components


def component_with_gold(nlp: Language, paths: Sequence[Path], settings: Mapping[str, Any], silent: bool) -> list[str]:
    """Return the calibrated component that gold is about, where it is not about the default one and only about that; else [].

    paths (Sequence[Path]): Of the gold. settings (Mapping): Options and dotted settings; a prefix, a config or a source
        chooses.
    """
    from ...pipe.component import Calibrator

    default = DEFAULTS["source"]["component"]
    fitted = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    pipes = [pipe for pipe in fitted if pipe.source.component not in ("", default)]
    is_chosen = any(
        value is not None and (name in ("--attr", "--config") or ".source." in name) for name, value in settings.items()
    )
    if not pipes or is_chosen:
        return []
    with warnings.catch_warnings():  # it is read for the fit, too
        warnings.simplefilter("ignore")
        examples = [example for path in paths for example in read_examples(nlp, path, gold_preproc=False)]
    if default in nlp.component_names and is_gold_of(nlp, default, [example.reference for example in examples]):
        return []
    by_name = {pipe.name: pipe.source.component for pipe in pipes}
    components = list(dict.fromkeys(by_name[name] for name in names_with_gold(pipes, examples)))
    if len(components) != 1:
        return []
    if not silent:
        inform(f"The gold is of '{components[0]}', so that is calibrated (--component {default} for '{default}').")
    return components


def place_pipes(
    nlp: Language,
    model: str,
    components: Sequence[str],
    base: Block | None,
    options: Mapping[str, Any],
    overrides: Mapping[str, Any] | None,
    table: dict[str, str] | None,
    how: Mapping[str, Any],
) -> tuple[Language, list[ComponentFit]]:
    """Put a new pipe behind each component, or the default one. Return (the pipeline; the fits in its order).

    base, options, overrides: See `block_to_fit`. table (dict | None): A label map. how (Mapping): Arguments of `place_calib`.
    """
    if len(components) > 1:
        nlp = with_inline_recognizers(nlp, model, components, how["unreadable"])
    fits: dict[str, ComponentFit] = {}
    for name in components or ("",):
        named_options = {**options, "component": name} if name else options
        own, block = block_to_fit(nlp, base, named_options, overrides, how["second_pass"])
        present = PresentPipe.find(nlp, block[0], model, how["unreadable"])
        other_names = maps_on(nlp, block[1]["source"].get("component", ""))
        labels = _map_of(nlp, name, components, table)
        nlp, calib = place_calib(nlp, model, block, labels, **how)
        fits[calib.name] = ComponentFit(calib.name, own, present, other_names)
    return nlp, [fits[name] for name in nlp.component_names if name in fits]


def _map_of(nlp: Language, component: str, components: Sequence[str], table: dict[str, str] | None) -> dict[str, str] | None:
    """The label map of one component: of several, each has the labels that it knows, the last one also those that none does."""
    if table is None or len(components) < 2:
        return table
    known = {name: set(getattr(dict(nlp.components).get(name), "labels", ())) for name in components}
    others = set().union(*known.values()) if component == components[-1] else set(table)
    return {label: name for label, name in table.items() if label in known[component] or label not in others} or None


def put_back(nlp: Language, fit: ComponentFit) -> None:
    """Put the calibration that was there, as it was or adapted, in the place of the new pipe."""
    from ...pipe.scorer import drop_performance, set_performance

    assert fit.outcome is not None
    other, pipe = fit.outcome.reopen()
    config = {key: value for key, value in other.get_pipe_config(pipe.name).items() if key != "factory"}
    nlp.remove_pipe(fit.name)
    calib: Any = nlp.add_pipe("calib", name=pipe.name, config=config, after=pipe.source.component)
    calib.from_bytes(pipe.to_bytes())
    calib.held_out, calib.held_out_spans = pipe.held_out, pipe.held_out_spans
    figures = dict(other.meta.get("performance", {}))
    drop_performance(other, pipe.attr)
    remaining = other.meta.get("performance", {})
    set_performance(nlp, pipe.attr, {name: value for name, value in figures.items() if name not in remaining})
