"""`spacy calib stock`: remove the calibration from a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..doc.attributes import DEFAULT_ATTR, ENTITY_ATTR
from ..errors import calib_error
from ..pipe.pipeline import INLINE_FACTORIES, load_with_factories, open_model
from .shared.command import argument, command
from .shared.options import CalibratedModel, Code, Force, Silent
from .shared.outputs import check_pipeline_folder
from .shared.screen import msg
from .shared.writing import print_result, write_pipeline

if TYPE_CHECKING:
    from spacy.language import Language


@command(example="./calibrated ./stock")
def stock(
    model: CalibratedModel,
    output: Annotated[Path, argument("OUTPUT", "Folder to write the stock pipeline to")],
    *,
    code: Code = None,
    force: Force = False,
    silent: Silent = True,
) -> Language:
    """
    Remove the calibration from a pipeline: its calib pipes. The weights stay,
    and all components are spaCy's own again.

    RETURNS (Language): The stock pipeline. RAISES C067: nothing in it was added by `calib fit`. CalibError: any other error.
    """
    from ..pipe.scorer import drop_performance

    check_pipeline_folder(output, force, inputs=[code], model=model)
    nlp = open_model(model, code=code)
    factory_of = {name: nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    # Factory of our recognizer or parser, which keeps its scores -> spaCy's factory.
    stock_factories = {inline: factory for factory, inline in INLINE_FACTORIES.items()}
    stock_factory_of = {name: stock_factories[factory] for name, factory in factory_of.items() if factory in stock_factories}
    calib_pipes = [name for name, factory in factory_of.items() if factory in (DEFAULT_ATTR, ENTITY_ATTR)]
    if not stock_factory_of and not calib_pipes:
        raise calib_error("C067", model=model, available=", ".join(nlp.component_names) or "no components")
    attrs = [nlp.get_pipe(name).attr for name in calib_pipes]  # type: ignore[attr-defined]
    stock_nlp = load_with_factories(model, stock_factory_of, exclude=calib_pipes)
    for attr in attrs:
        drop_performance(stock_nlp, attr)
    write_pipeline(stock_nlp, output, force)
    changes = [f"'{name}' is spaCy's {factory} again" for name, factory in stock_factory_of.items()]
    changes += [f"{name!r} was removed" for name in calib_pipes]
    summary = f"{'; '.join(changes)}: {output}"
    result = {"output": str(output), "stock": stock_factory_of, "removed": calib_pipes}
    print_result(result, lambda: msg.good(summary), "table", silent)
    return stock_nlp
