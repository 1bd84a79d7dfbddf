"""Fits of one or several components in one run: insert new calib pipes, compare them with old ones, print the results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...calibration.replacement import ADAPTED, PRESENT
from ...pipe.component import Calibrator
from ...pipe.label_names import maps_on
from ..shared.choose_pipe import names_with_gold
from ..shared.command import check_option
from ..shared.examples import read_examples
from ..shared.screen import inform, msg, shell_line
from ..shared.writing import print_exact, print_json
from .adapt_output import show_adaptation
from .comparison import ComponentFit, card_line, show_comparison
from .fit_output import show_fit
from .new_calib import block_to_fit, insert_calib, with_inline_recognizers
from .settings import DEFAULTS, Block, translate_options

if TYPE_CHECKING:
    from spacy.language import Language


def check_components(
    component: str | Sequence[str] | None, single_options: Mapping[str, Any], overrides: Mapping[str, Any] | None
) -> list[str]:
    """Return the distinct names in --component. RAISES C056: a name is empty, or an option does not allow several.

    single_options, overrides (Mapping): Options (flag -> value, None if not set) and dotted settings that allow one name only.
    """
    components = list(dict.fromkeys([component] if isinstance(component, str) else component or ()))
    for name in components:
        translate_options({"component": name})  # called only for its error: C056 for an empty name
    settings = {f"--{setting}": value for setting, value in (overrides or {}).items()}
    if len(components) > 1:
        expected = "left out with several --component (it is for one: fit that one separately)"
        for flag, value in {**single_options, **settings}.items():
            check_option(flag, value is None, expected, "it" if value is True else value)  # True: the flag alone
    return components


def component_with_gold(nlp: Language, paths: Sequence[Path], settings: Mapping[str, Any], silent: bool) -> list[str]:
    """Choose the component to fit by the gold: return [name] if only one component with a fitted calib pipe has gold, else [].

    [] leaves the choice to the caller. It is returned, too, if the default component has gold, or if --attr, --config or a
    dotted setting of the source is among the `settings`. paths (Sequence[Path]): Gold files. settings (Mapping): Options and
    dotted settings, name -> value. silent (bool): Whether to print no message about the choice.
    """
    from ...pipe.gold_checks import has_gold_for

    set_names = [name for name, value in settings.items() if value is not None]
    if any(name in ("--attr", "--config") or ".source." in name for name in set_names):
        return []
    default = DEFAULTS["source"]["component"]
    fitted_pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    pipes = [pipe for pipe in fitted_pipes if pipe.source.component not in ("", default)]
    if not pipes:
        return []
    with warnings.catch_warnings():  # the fit reads the gold again, and warns then
        warnings.simplefilter("ignore")
        examples = [example for path in paths for example in read_examples(nlp, path, gold_preproc=False)]
    if default in nlp.component_names and has_gold_for(nlp, default, [example.reference for example in examples]):
        return []
    names = names_with_gold(pipes, examples)
    components = list(dict.fromkeys(pipe.source.component for pipe in pipes if pipe.name in names))
    if len(components) != 1:
        return []
    if not silent:
        inform(f"The gold is for '{components[0]}', so that is calibrated (--component {default} for '{default}').")
    return components


def insert_pipes(
    nlp: Language,
    model: str,
    components: Sequence[str],
    base: Block | None,
    options: Mapping[str, Any],
    overrides: Mapping[str, Any] | None,
    label_map: dict[str, str] | None,
    calib_options: Mapping[str, Any],
) -> tuple[Language, list[ComponentFit]]:
    """Insert a new calib pipe after each component, or after the default one; return (pipeline, fits in pipeline order).

    model (str): Package or folder that `nlp` is from, to load it anew. components (Sequence[str]): () for the default one.
    base (tuple | None): Name and settings from a config file. options, overrides (Mapping): Given options by name, and dotted
    settings. label_map: Component label -> gold label. calib_options (Mapping): Further arguments of `insert_calib`.
    """
    if len(components) > 1:  # all at once: to load the pipeline anew later would lose pipes inserted before
        nlp = with_inline_recognizers(nlp, model, components, calib_options["unreadable"])
    fits: dict[str, ComponentFit] = {}
    for name in components or ("",):  # "": the default component
        component_options = {**options, "component": name} if name else options
        old_name, block = block_to_fit(nlp, base, component_options, overrides, calib_options["second_pass"])
        calib_name, settings = block
        replaced = dict(nlp.components).get(calib_name)
        present = replaced if isinstance(replaced, Calibrator) and replaced.fitted else None  # None: nothing to compare with
        # Label maps of the component's fitted pipes, in whose names the gold may be; read before `insert_calib` removes one.
        label_maps = maps_on(nlp, settings["source"].get("component", ""))
        component_map = _map_of_component(nlp, name, components, label_map)
        nlp, calib = insert_calib(nlp, model, block, component_map, **calib_options)
        fits[calib.name] = ComponentFit(calib.name, old_name, present, label_maps)
    return nlp, [fits[name] for name in nlp.component_names if name in fits]


def _map_of_component(
    nlp: Language, component: str, components: Sequence[str], label_map: dict[str, str] | None
) -> dict[str, str] | None:
    """Return the part of a label map (component label -> gold label) for `component`, one of `components`; None if it is empty.

    The last component also gets the labels that no component has, so that they are reported.
    """
    if label_map is None or len(components) < 2:
        return label_map
    labels_of = {name: set(getattr(dict(nlp.components).get(name), "labels", ())) for name in components}
    labels = labels_of[component]
    if component == components[-1]:
        labels |= set(label_map).difference(*labels_of.values())
    return {label: gold_label for label, gold_label in label_map.items() if label in labels} or None


def put_back(nlp: Language, fit: ComponentFit, reload: Callable[[], Language]) -> None:
    """Replace the new calib pipe by the old one, adapted if that was chosen, and restore its figures in the pipeline's meta.

    nlp (Language): The pipeline with the new pipe. reload (Callable): Loads it as it was before the fit.
    """
    from ...pipe.scorer import drop_performance, set_performance

    old_nlp, old_calib = fit.reopen_present(reload)
    config = dict(old_nlp.get_pipe_config(old_calib.name))
    nlp.remove_pipe(fit.name)
    calib: Any = nlp.add_pipe(config.pop("factory"), name=old_calib.name, config=config, after=old_calib.source.component)
    calib.from_bytes(old_calib.to_bytes())
    calib.held_out, calib.held_out_spans = old_calib.held_out, old_calib.held_out_spans  # not in the bytes
    # The figures of the old pipe are those that `drop_performance` removes.
    figures = dict(old_nlp.meta.get("performance", {}))
    drop_performance(old_nlp, old_calib.attr)
    remaining = old_nlp.meta.get("performance", {})
    set_performance(nlp, old_calib.attr, {name: value for name, value in figures.items() if name not in remaining})


def show_output(
    nlp: Language, fits: Sequence[ComponentFit], output: Path, format: str, gold_options: Mapping[str, Any]
) -> None:
    """Print the fits as JSON (`format`), or in words with the `evaluate` command to run next, which has the gold_options."""
    if format == "json":
        states = [_state_of(nlp, component_fit) for component_fit in fits]
        pipes = {state["pipe"]: state for state in states}
        print_json({"output": str(output), **({"pipes": pipes} if len(pipes) > 1 else states[0])})
        return
    for component_fit in fits:
        _show_fit(nlp, component_fit, output)
    msg.text("Next, evaluate it on GOLD that is not in this fit:")
    print_exact([f"{shell_line('evaluate', output, 'GOLD', options=gold_options)}\n"], json=False)


def _state_of(nlp: Language, component_fit: ComponentFit) -> dict[str, Any]:
    """Return the summary of a component's fit, and its comparison with the old calibration, as plain data for JSON."""
    from .held_out import held_out_rows

    calib: Any = nlp.get_pipe(component_fit.name)
    state = calib.fit_info.state()
    return {"pipe": calib.name, **state, "errors": held_out_rows(calib), **component_fit.comparison_state()}


def _show_fit(nlp: Language, component_fit: ComponentFit, output: Path) -> None:
    """Print in words what was written for one component: the new fit, or the old calibration. output (Path): The folder."""
    calib: Any = nlp.get_pipe(component_fit.name)
    if component_fit.choice == PRESENT:
        msg.info(f"Written as it was: {output}")
    elif component_fit.choice == ADAPTED:
        show_adaptation(calib, calib.fit_info.adaptations[-1], output)
    else:
        if component_fit.old_name is not None:
            msg.info(f"Settings that were not given are those of the pipeline's calib pipe '{component_fit.old_name}'")
        show_fit(calib, output, gains=component_fit.gains)
    show_comparison(component_fit)
    component = calib.source.component
    if component_fit.present is None and component and (line := card_line(nlp, component)):
        msg.info(line)
