"""The decorator `@command` and the declarations of arguments and options: plain typer, with errors as sentences."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from ...errors import calib_error
from ...pairs.bins import MOST_COUNTED
from ...registry import REGISTRIES, recalibrators
from .screen import user_errors

# Parameter -> (minimum, maximum) of options that are whole numbers; those not listed have COUNT.
RANGES = {
    "seed": (0, 2**32 - 1),  # numpy's seeds have 32 bits
    "n_process": (1, 1024),
    "gpu_id": (-1, 1023),
    "port": (1, 65535),
}
COUNT = (1, MOST_COUNTED)
METHODS = "{methods}"  # placeholder in the help of an option: the short names of all recalibrators
# Key in the `meta` of a click context: options that typer does not read, as parameter -> value.
MORE_OPTIONS = "spacy_calib.more_options"
_Function = TypeVar("_Function", bound=Callable[..., Any])


def argument(word: str, help: str) -> Any:
    """Declare an argument with its help. word (str): Its name in the usage."""
    return typer.Argument(metavar=word, help=help)


def option(help: str, *flags: str, words: Sequence[str] = (), **settings: Any) -> Any:
    """Declare an option with its help. Its flag is the name of its parameter, "--n-process", unless `flags` has a long flag.

    flags (str): Its letter, or all its flags. words (Sequence[str]): The allowed values: shown in the help, completed by the
    shell, and checked. settings: Further arguments of typer.Option.
    """
    if words:
        settings |= {
            "metavar": f"[{'|'.join(words)}]",
            "autocompletion": lambda incomplete: [word for word in words if word.startswith(incomplete)],
        }
    declaration = typer.Option(*flags, help=help, **settings)
    declaration.words = words  # read by `typer_function`
    return declaration


class CalibCommand(TyperCommand):
    """A click command whose help lists the registered recalibrators where an option's help has the placeholder METHODS.

    more_options (Sequence[str]): Beginnings of options that no parameter of the function declares.
    """

    more_options: Sequence[str] = ()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            help = getattr(parameter, "help", None) or ""
            if METHODS in help:  # recalibrators are imported only when their names are shown
                parameter.help = help.replace(METHODS, ", ".join(recalibrators()))  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def command(*, example: str, kind: type[CalibCommand] = CalibCommand) -> Callable[[_Function], _Function]:
    """Decorate a function to make it a command. The function itself stays as it is, and can be called from Python.

    Parameters with `argument` or `option` in their annotation are those of the command line; the others are set from Python, or
    by a `kind` that parses more options. The help is the docstring up to its sections RETURNS and RAISES.
    example (str): The end of a command line that works. kind (type): The click class that parses the command line.
    """

    def declare(run: _Function) -> _Function:
        vars(run).update(example=example, kind=kind)  # attributes that the click command is built from
        return run

    return declare


def typer_function(run: Callable[..., Any]) -> Callable[..., None]:
    """Return the function that typer calls for a command, `run` with typer's annotations and errors printed as sentences."""
    typer_parameters = [_for_typer(parameter, run) for parameter in inspect.signature(run).parameters.values()]
    declared = [parameter for parameter in typer_parameters if parameter is not None]
    # Parameter -> its allowed values, () for any. Its annotation is Annotated[type, declaration]; `option` stored them there.
    words = {parameter.name: getattr(get_args(parameter.annotation)[1], "words", ()) for parameter in declared}

    def call(ctx: typer.Context, **values: Any) -> None:
        # Messages have notes on options, which not every command has; those on other options than these are not printed.
        flags = {flag for parameter in ctx.command.params for flag in parameter.opts}
        with user_errors(flags.union(getattr(ctx.command, "more_options", ()))):
            check_values(ctx.command.params, values, words)
            run(**values, **ctx.meta.get(MORE_OPTIONS, {}))  # dotted settings, if the command's class parsed some

    parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context), *declared]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__doc__ = (inspect.getdoc(run) or "").split("\n\nRETURNS")[0].split("\n\nRAISES")[0]
    return call


def _for_typer(parameter: inspect.Parameter, run: Any) -> inspect.Parameter | None:
    """Return a parameter of the function `run` in the form that typer reads; None for one without `argument` or `option`."""
    annotation = parameter.annotation
    # Text, as modules have `from __future__ import annotations`.
    annotation = eval(annotation, run.__globals__) if isinstance(annotation, str) else annotation
    if get_origin(annotation) is not Annotated:
        return None
    value_type, declared = get_args(annotation)
    declaration = copy.copy(declared)  # commands share declarations, and it is changed below
    types = get_args(value_type) if get_origin(value_type) in (Union, UnionType) else (value_type,)
    if isinstance(declaration, OptionInfo):
        # typer keeps the first flag in `default`, and the others in `param_decls`.
        flags = [flag for flag in (declaration.default, *(declaration.param_decls or ())) if isinstance(flag, str)]
        if not any(flag.startswith("--") for flag in flags):
            declaration.default, declaration.param_decls = f"--{parameter.name.replace('_', '-')}", tuple(flags)
        if int in types:
            declaration.min, declaration.max = RANGES.get(parameter.name, COUNT)
    is_switch = value_type is bool  # off unless given, though `silent` is True by default in Python
    return parameter.replace(
        kind=inspect.Parameter.KEYWORD_ONLY,
        default=False if is_switch else parameter.default,
        # `Union` for typer before 0.10; the extra word keeps the cache of typing from returning the parameter's own annotation.
        annotation=Annotated[Union[types], declaration, "for typer"],  # noqa: UP007
    )


def check_values(parameters: Sequence[Any], values: Mapping[str, Any], words: Mapping[str, Sequence[str]]) -> None:
    """Check what typer does not: that values are among the allowed words, and that the system accepts paths.

    parameters (Sequence): Parameters of the click command. values, words (Mapping): Name of a parameter -> its value, and its
    allowed words, () for any. RAISES C056: a value is not allowed.
    """
    for parameter in parameters:
        value, allowed = values.get(parameter.name), words.get(parameter.name)
        shown_name = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
        if allowed and value is not None:
            check_option(shown_name, value in allowed, f"one of {', '.join(allowed)}", repr(value))
        items = value if isinstance(value, (list, tuple)) else [value]
        for item in items:
            # A model is given as text, since it may be the name of a package.
            if isinstance(item, Path) or (parameter.name == "model" and item):
                check_path(shown_name, Path(item))


def check_option(option: str, is_valid: bool, expected: str, value: Any) -> None:
    """Raise C056 for an option and its value unless `is_valid`. expected (str): What the value must be, for the message."""
    if not is_valid:
        raise calib_error("C056", option=option, wanted=expected, given=value)


def check_path(option: str, path: Path) -> None:
    """Check that the system accepts the path of an option. RAISES C056: a name is too long, or a folder may not be entered."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass  # no such path (ValueError: it contains NUL); a command that needs it to exist reports that
    except OSError as error:
        check_option(option, False, f"a path that the system accepts ({error.strerror})", path)  # raises C056


@contextlib.contextmanager
def folder_errors() -> Iterator[None]:
    """Raise C491 for an OSError of a block or decorated function that lists folders, for instance if a folder is locked."""
    try:
        yield
    except OSError as error:
        raise calib_error("C491", path=error.filename, why=error.strerror or error) from None


def check_confidence(confidence: float) -> None:
    """Check that --confidence is far enough from 0 and 1 for floats: between 0.001 and 0.99999. RAISES C056: it is not."""
    minimum, maximum = 0.001, 0.99999
    check_option("--confidence", minimum <= confidence <= maximum, f"between {minimum} and {maximum}", confidence)


def check_registered(setting: str, registry: str, name: object) -> None:
    """Check that a registry has the function `name`. setting (str): Its place in the config. RAISES C195: it has none."""
    if name not in REGISTRIES[registry]:
        names = ", ".join(sorted(REGISTRIES[registry].get_all()))
        raise calib_error("C195", setting=setting, registry=registry, given=name, names=names)


def registered_method(method: str) -> str:
    """Return the registered name of a recalibrator. method: That name or a short one. RAISES C056: unknown. C185: ambiguous."""
    by_short_name = recalibrators()  # short name, such as "isotonic" -> recalibrator
    registry = REGISTRIES["calib_recalibrators"]  # has the registered names, such as "spacy-calib.Isotonic.v1"
    if method in by_short_name and method not in registry:
        return str(by_short_name[method].registered)
    names = ", ".join(("auto", *by_short_name))
    check_option("--method", method in registry, f"one of {names} or a registered recalibrator", repr(method))
    return method
