"""`spacy calib stock`: the pipeline as it was before it was calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ..errors import calib_error
from .shared.checks import check_format
from .shared.loading import INLINE_FACTORIES, import_user_code, load_pipeline, load_with_factories
from .shared.options import Calibrated, Code, Force, Format, Silent
from .shared.outputs import check_pipeline_folder
from .shared.results import print_json
from .shared.screen import user_errors


def stock_cli(
    # fmt: off
    model: Calibrated,
    output: Path = typer.Argument(..., metavar="OUTPUT", help="Folder to write the stock pipeline to"),
    keep_calib: bool = typer.Option(False, "--keep-calib", help="Keep the calib pipes: they decode again for the scores"),
    format: Format = "table",
    code: Code = None,
    force: Force = False,
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Turn a calibrated pipeline back into one of spaCy's own components: the same
    weights, without calib pipes. It needs this package no more.
    """
    with user_errors():
        stock(model, output, keep_calib=keep_calib, format=format, code=code, force=force, silent=silent)


def stock(
    model: str,
    output: Path,
    *,
    keep_calib: bool = False,
    format: str = "table",
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
) -> Any:
    """What the command does.

    RETURNS (Language): The stock pipeline.
    RAISES C067: nothing in the pipeline comes from `calib fit`. CalibError: every other fault of the input.
    """
    from ..pipe.performance import drop_performance
    from .shared.atomic import write_folder
    from .shared.screen import msg

    check_format(format)
    import_user_code(code)
    check_pipeline_folder(output, force, inputs=[code], model=model)
    nlp = load_pipeline(model)
    factory_of = {name: nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    ours = {factory: stock for stock, factory in INLINE_FACTORIES.items()}
    back = {name: ours[factory] for name, factory in factory_of.items() if factory in ours}
    calib = [name for name, factory in factory_of.items() if factory == "calib"]
    if not back and not calib:
        raise calib_error("C067", model=model, available=", ".join(nlp.component_names) or "no components")
    plain = load_with_factories(model, back, exclude=() if keep_calib else calib)
    for name in () if keep_calib else calib:
        drop_performance(plain, nlp.get_pipe(name).attr)  # type: ignore[attr-defined]
    write_folder(output, lambda folder: plain.to_disk(folder), force)
    gone = [] if keep_calib else calib
    if not silent and format == "json":
        print_json({"output": str(output), "stock": back, "removed": gone})
    elif not silent:
        changed = [f"'{name}' is spaCy's {factory} again" for name, factory in back.items()]
        changed += [f"'{name}' is gone" for name in gone]
        msg.good(f"{'; '.join(changed)}: {output}")
    return plain
