"""Print what `spacy calib fit` wrote: each fit, and the command that evaluates it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..shared.score_readers import show_info
from ..shared.screen import msg, warn
from ..shared.shell import shell_line
from ..shared.writing import print_exact, print_json
from .comparison import card_line, show_comparison, show_present
from .component_fits import ComponentFit
from .fit_output import show_fit

if TYPE_CHECKING:
    from spacy.language import Language


def show_output(
    nlp: Language, fits: Sequence[ComponentFit], reader: Any | None, output: Path, format: str, gold_options: Mapping[str, Any]
) -> None:
    """Print the fits, as JSON or in words and with the next command.

    reader: The event pipe, if one was fitted. gold_options (Mapping): Options that other gold needs, too, as for `shell_line`.
    """
    from ...pipe.score_readers import info_of

    event_info = None if reader is None else info_of(reader)
    states: dict[str, dict[str, Any]] = {}
    for component_fit in fits:
        calib: Any = nlp.get_pipe(component_fit.name)
        component, outcome = calib.source.component, component_fit.outcome
        if component and component not in nlp.pipe_names:
            warn(
                f"Component '{component}' is disabled in this pipeline, so {calib.fit_info.row_unit}s get no score; enable it with nlp.enable_pipe."
            )
        event_fields = {} if event_info is None else {"event": event_info}
        comparison_fields = {} if outcome is None else {"comparison": outcome.to_dict()}
        states[calib.name] = {"pipe": calib.name, **calib.fit_info.state(), **event_fields, **comparison_fields}
    if format == "json":
        print_json({"output": str(output), **({"pipes": states} if len(fits) > 1 else states[fits[0].name])})
        return
    for component_fit in fits:
        _show_fit(nlp, component_fit, reader, output)
    msg.text("Next, evaluate it on GOLD that is not in this fit:")
    print_exact([f"{shell_line('evaluate', output, 'GOLD', options=gold_options)}\n"], json=False)


def _show_fit(nlp: Language, component_fit: ComponentFit, reader: Any | None, output: Path) -> None:
    calib: Any = nlp.get_pipe(component_fit.name)
    component, outcome = calib.source.component, component_fit.outcome
    if outcome is not None and not component_fit.is_written:
        show_present(calib, outcome, output)
        return
    if component_fit.old_name is not None:
        msg.info(f"Settings that were not given are those of the pipeline's calib pipe '{component_fit.old_name}'")
    show_fit(calib, output, gains=None if outcome is None else outcome.gains)
    if reader is not None:
        show_info(reader.name, reader)
    if outcome is not None:
        show_comparison(outcome)
    elif component and (line := card_line(nlp, component)):
        msg.info(line)
