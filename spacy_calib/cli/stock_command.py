"""`spacy calib stock`: the pipeline as it was before it was calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import calib_error
from ..pipe.loading import INLINE_FACTORIES, load_with_factories, open_model
from .shared.command import argument, command
from .shared.options import CalibratedModel, Code, Force, Format, Silent
from .shared.outputs import check_pipeline_folder
from .shared.screen import msg
from .shared.writing import deliver

if TYPE_CHECKING:
    from spacy.language import Language


@command(example="./calibrated ./stock")
def stock(
    model: CalibratedModel,
    output: Annotated[Path, argument("OUTPUT", "Folder to write the stock pipeline to")],
    *,
    format: Format = "table",
    code: Code = None,
    force: Force = False,
    silent: Silent = True,
) -> Language:
    """
    Turn a calibrated pipeline back into one of spaCy's own components: the same
    weights, without calib pipes and those that read their scores. It needs
    this package no more.

    RETURNS (Language): The stock pipeline.
    RAISES C067: nothing in the pipeline comes from `calib fit`. CalibError: every other fault of the input.
    """
    from ..pipe.score_readers import score_readers
    from ..pipe.scorer import drop_performance
    from .shared.writing import write_pipeline

    check_pipeline_folder(output, force, inputs=[code], model=model)
    nlp = open_model(model, code=code)
    factory_of = {name: nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    stock_factories = {inline: factory for factory, inline in INLINE_FACTORIES.items()}
    restored = {name: stock_factories[factory] for name, factory in factory_of.items() if factory in stock_factories}
    calib_pipes = [name for name, factory in factory_of.items() if factory == "calib"]
    if not restored and not calib_pipes:
        raise calib_error("C067", model=model, available=", ".join(nlp.component_names) or "no components")
    attrs = [nlp.get_pipe(name).attr for name in calib_pipes]  # type: ignore[attr-defined]
    removed = [*calib_pipes, *(name for attr in attrs for name in score_readers(nlp, attr, fitted_only=False))]
    stock_nlp = load_with_factories(model, restored, exclude=removed)
    for attr in attrs:
        drop_performance(stock_nlp, attr)
    write_pipeline(stock_nlp, output, force)
    changes = [f"'{name}' is spaCy's {factory} again" for name, factory in restored.items()]
    summary = f"{'; '.join([*changes, *(f'{name!r} is gone' for name in removed)])}: {output}"
    result = {"output": str(output), "stock": restored, "removed": removed}
    deliver(result, lambda: msg.good(summary), output=None, format=format, silent=silent)
    return stock_nlp
