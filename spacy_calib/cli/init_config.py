"""`spacy calib init-config`: the settings of a calib pipe as a file, to be changed by hand and given to `fit --config`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ..errors import calib_error
from .fitting.overrides import overrides_of
from .fitting.settings import pipe_settings
from .shared.loading import import_user_code, reason
from .shared.options import Code, Component, Method, NewAttr, Silent
from .shared.outputs import Output, check_files
from .shared.screen import user_errors


def init_config_cli(
    # fmt: off
    ctx: typer.Context,
    output: Path = typer.Argument(..., metavar="OUTPUT", help="File to write; - prints the config"),
    component: Component = None,
    method: Method = None,
    attr: NewAttr = None,
    code: Code = None,
    force: bool = typer.Option(False, "--force", "-F", help="Replace a file at OUTPUT"),
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Write the settings of a calib pipe, all of them with their defaults, as a
    config for `calib fit --config`.

    Any setting can be given as in `spacy train`, for instance
    --components.calib.grouping.n_groups 3.
    """
    with user_errors():
        options = {"component": component, "method": method, "attr": attr}
        given = {key: value for key, value in options.items() if value is not None}
        init_config(output, overrides=overrides_of(ctx), code=code, force=force, silent=silent, **given)


def init_config(
    output: Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
    **options: Any,
) -> str:
    """What the command does. options: component, method, attr, as on the command line.

    RETURNS (str): The config.
    RAISES C054, C055: the file exists, or cannot be written. C056, C063, C170: an option or a setting that no pipe has. C062: the code.
    """
    from .shared.atomic import write_file
    from .shared.screen import msg

    printed = str(output) == "-"
    if not printed:
        check_files([Output("OUTPUT", output)], force, inputs=[code])
    import_user_code(code)
    name, settings = pipe_settings(None, options, overrides)
    text = config_text(name, settings)
    if printed:
        typer.echo(text)
        return text
    write_file(output, (text + "\n").encode("utf-8"))
    if not silent:
        msg.good(f"The settings of a pipe '{name}': {output}")
        msg.text(f"python -m spacy calib fit MODEL DATA OUTPUT --config {output}")
    return text


def config_text(name: str, settings: Mapping[str, Any]) -> str:
    """The block of the pipe with every setting that it and its parts have.

    RAISES C063: a setting that no pipe has.
    """
    from thinc.api import Config

    from ..factory import DEFAULT_CONFIG
    from ..registry import registry

    unknown = sorted(set(settings) - set(DEFAULT_CONFIG))
    if unknown:
        raise calib_error("C063", why=f"a calib pipe has no setting {unknown[0]!r}; it has: {', '.join(DEFAULT_CONFIG)}")
    source = {**DEFAULT_CONFIG["source"], **settings["source"]}
    try:
        filled = registry.fill({name: {**DEFAULT_CONFIG, **settings, "source": source}}, validate=False)[name]
    except Exception as error:
        raise calib_error("C063", why=reason(error)) from None
    return Config({"components": {name: {"factory": "calib", **filled}}}).to_str()
