"""`spacy calib stock`: the pipeline as it was before it was calibrated."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import calib_error
from ..pipe.loading import INLINE_FACTORIES, load_with_factories, open_model
from .shared.command import Options, argument, options_command
from .shared.options import CalibratedModel, Code, Force, Format, Silent
from .shared.outputs import check_pipeline_folder
from .shared.screen import msg
from .shared.writing import deliver

if TYPE_CHECKING:
    from spacy.language import Language


@dataclass(frozen=True)
class StockOptions(Options):
    """Which pipeline to turn back, and where to."""

    model: CalibratedModel
    output: Annotated[Path, argument("OUTPUT", "Folder to write the stock pipeline to")]
    _: KW_ONLY
    format: Format = "table"
    code: Code = None
    force: Force = False
    silent: Silent = True


@options_command(StockOptions, example="./calibrated ./stock")
def stock(options: StockOptions) -> Language:
    """
    Turn a calibrated pipeline back into one of spaCy's own components: the same
    weights, without calib pipes. It needs this package no more.

    RETURNS (Language): The stock pipeline.
    RAISES C067: nothing in the pipeline comes from `calib fit`. CalibError: every other fault of the input.
    """
    from ..pipe.scorer import drop_performance
    from .shared.writing import write_pipeline

    model, output = options.model, options.output
    check_pipeline_folder(output, options.force, inputs=[options.code], model=model)
    nlp = open_model(model, code=options.code)
    factory_of = {name: nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    ours = {factory: stock for stock, factory in INLINE_FACTORIES.items()}
    back = {name: ours[factory] for name, factory in factory_of.items() if factory in ours}
    calib = [name for name, factory in factory_of.items() if factory == "calib"]
    if not back and not calib:
        raise calib_error("C067", model=model, available=", ".join(nlp.component_names) or "no components")
    plain = load_with_factories(model, back, exclude=calib)
    for name in calib:
        drop_performance(plain, nlp.get_pipe(name).attr)  # type: ignore[attr-defined]
    write_pipeline(plain, output, options.force)
    changed = [f"'{name}' is spaCy's {factory} again" for name, factory in back.items()]
    told = f"{'; '.join([*changed, *(f'{name!r} is gone' for name in calib)])}: {output}"
    result = {"output": str(output), "stock": back, "removed": calib}
    deliver(result, lambda: msg.good(told), output=None, format=options.format, silent=options.silent)
    return plain
