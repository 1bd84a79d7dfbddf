"""`spacy calib init-config`: the settings of a calib pipe as a file, to be changed by hand and given to `fit --config`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import brief, calib_error
from ..pipe.loading import import_user_code, reason
from .fitting.settings import pipe_settings
from .shared.arguments import WithOverrides
from .shared.command import Options, argument, command, option
from .shared.options import Code, Method, Silent
from .shared.outputs import Output, check_files
from .shared.screen import msg
from .shared.writing import write_file


@dataclass(frozen=True)
class InitOptions(Options):
    """The settings that have options of their own, and where the file goes."""

    output: Annotated[Path, argument("OUTPUT", "File to write; - prints the config")]
    _: KW_ONLY
    method: Method = None
    code: Code = None
    force: Annotated[bool, option("Replace a file at OUTPUT", "-F")] = False
    silent: Silent = True
    overrides: Mapping[str, Any] | None = None


@command(
    InitOptions,
    does="Write the settings of a calib pipe as a file, for fit --config",
    example="calib.cfg --method isotonic",
    kind=WithOverrides,
)
def init_config(options: InitOptions) -> str:
    """
    Write the settings of a calib pipe, all of them with their defaults, as a
    config for `calib fit --config`.

    Any setting can be given as in `spacy train`, for instance
    --components.calib.grouping.n_groups 3.

    RETURNS (str): The config.
    RAISES C054, C055: the file exists, or cannot be written. C056, C063, C170: an option or a setting that no pipe has. C062: the code.
    """
    output = options.output
    printed = str(output) == "-"
    if not printed:
        check_files([Output("OUTPUT", output)], options.force, inputs=[options.code])
    import_user_code(options.code)
    name, settings = pipe_settings(None, options.given(), options.overrides)
    text = config_text(name, settings)
    if printed:
        typer.echo(text)
        return text
    write_file(output, (text + "\n").encode("utf-8"))
    if not options.silent:
        msg.good(f"The settings of a pipe '{name}': {output}")
        msg.text(f"python -m spacy calib fit MODEL DATA OUTPUT --config {output}")
    return text


def config_text(name: str, settings: Mapping[str, Any]) -> str:
    """The block of the pipe with every setting that it and its parts have.

    RAISES C063: a setting that no pipe has.
    """
    from thinc.api import Config

    from ..pipe.factory import DEFAULT_CONFIG
    from ..registry import registry

    unknown = sorted(set(settings) - set(DEFAULT_CONFIG))
    if unknown:
        raise calib_error(
            "C063", why=f"a calib pipe has no setting {brief(repr(unknown[0]))}; it has: {', '.join(DEFAULT_CONFIG)}"
        )
    source = {**DEFAULT_CONFIG["source"], **settings["source"]}
    try:
        filled = registry.fill({name: {**DEFAULT_CONFIG, **settings, "source": source}}, validate=False)[name]
    except Exception as error:
        raise calib_error("C063", why=reason(error)) from None
    return Config({"components": {name: {"factory": "calib", **filled}}}).to_str()
