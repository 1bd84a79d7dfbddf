"""Loads pipelines, with a one-sentence error for each failure, and finds their calib pipes."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy import util

from ..errors import CalibError, brief, calib_error
from ..pairs.documents import pluralize

if TYPE_CHECKING:
    from spacy.language import Language

    from .component import Calibrator

_SPACY_NAMES = re.compile("[a-z]{2}_(core|dep|ent|sent)_(news|ud|web|wiki)_(sm|md|lg|trf)")  # for `spacy download`


def reason(error: BaseException) -> str:
    """Describe an exception in one line: the faults of a config error, else the first line of its message, else its type."""
    from thinc.api import ConfigValidationError

    if isinstance(error, ConfigValidationError):
        faults = [f"{' -> '.join(map(str, fault.get('loc', ())))}: {fault.get('msg', '')}" for fault in error.errors or ()]
        all_faults = "; ".join(fault.strip(": ") for fault in faults)
        title_and_description = " ".join(f"{error.title or ''} {error.desc or ''}".split())
        return all_faults or title_and_description or type(error).__name__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def import_user_code(code: str | Path | None) -> None:
    """Import the user's code, which registers functions. code: A .py file, a module name or None. RAISES C062: it fails."""
    if code is not None:
        try:
            if isinstance(code, Path) or code.endswith(".py"):
                util.import_file("python_code", code)
            else:
                import_module(code)
        except Exception as error:
            raise calib_error("C062", path=code, why=reason(error)) from None


def load_pipeline(model: str, overrides: dict[str, Any] | None = None, exclude: Iterable[str] = ()) -> Language:
    """Load a pipeline by name or path. overrides (dict | None): Replaces parts of the config. exclude: Pipes to leave out.

    RAISES C050: it cannot be loaded. C010 to C020: a calib pipe in it cannot be read.
    """
    try:
        return util.load_model(model, config=overrides or {}, exclude=list(exclude))
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C050", model=model, why=_why_not_loaded(model, error)) from None


def _why_not_loaded(model: str, error: Exception) -> str:
    """Return in words why spaCy could not load a pipeline (error: what it raised), and what to do about it if this is known."""
    if isinstance(error, OSError) and os.path.isfile(model):
        return "it is a file, and a pipeline is a folder: MODEL comes first, then DATA."
    if isinstance(error, OSError):
        why = "no package, shortcut or folder of this name" if "E050" in str(error) else reason(error)
        download = f" (`python -m spacy download {model}`)" if _SPACY_NAMES.fullmatch(model) else ""
        models = ", ".join(util.get_installed_models()) or "none"
        return f"{why}; install it{download}, or give the path of a pipeline or the name of an installed one ({models})."
    if isinstance(error, ModuleNotFoundError) and error.name == model and "-" in model:
        return f"Python imports packages by names with underscores; give {model.replace('-', '_')}."
    if unknown := re.match(r"\[E002\] .*? factory for '(.*?)'", str(error)):
        why = f"nothing here registers its component '{unknown[1]}'; install the package that does, or give a Python file "
        return why + "that defines or imports it (--code)."
    return reason(error)


@contextlib.contextmanager
def component_faults(nlp: Language, names: Iterable[str] = (), passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn any error in a `with` block that runs components, or saves the pipeline, into a CalibError.

    names (Iterable[str]): Names of the components that run. passing (tuple): Exceptions that are raised unchanged.
    RAISES C086: a component fails, and one of those that run is not trained. C490: a component fails otherwise.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (CalibError, *passing)):
            raise
        last = str(error).strip().rpartition("\n")[2]  # spaCy's error for a worker process (E871) has a whole traceback
        if calib_fault := re.fullmatch(r"spacy_calib\.CalibError: \[(\w+)\] (.*)", last):
            raise CalibError(calib_fault[1], calib_fault[2]) from None
        from ..sources.source import is_trained

        untrained = [name for name in names if not is_trained(nlp.get_pipe(name))]
        if untrained:
            raise calib_error("C086", component=untrained[0]) from None
        why = brief(last, 160) if "E871" in str(error) else f"{type(error).__name__}: {brief(error, 160)}"
        raise calib_error("C490", why=why) from error


# spaCy's factories of recognizers and parser -> ours with the same settings and weights.
INLINE_FACTORIES = {"ner": "calib_ner", "beam_ner": "calib_beam_ner", "parser": "calib_parser"}


def load_with_factories(model: str, factories: dict[str, str], exclude: Iterable[str] = ()) -> Language:
    """Load a pipeline with other factories for some components (component -> factory). The rest is as in `load_pipeline`."""
    return load_pipeline(model, {"components": {name: {"factory": factory} for name, factory in factories.items()}}, exclude)


def check_readable(nlp: Language, pipe: Calibrator) -> None:
    """Check that a calib pipe can read its component. RAISES C021: it is missing. C069, C084: a needed pipe is disabled."""
    component_name = pipe.source.component
    component = pipe.lookup.component()
    if component_name and component is None:
        raise calib_error("C021", component=component_name, available=", ".join(nlp.component_names))
    for name, candidate in nlp.components:
        if (candidate is pipe or candidate is component) and name not in nlp.pipe_names:
            raise calib_error("C069", name=name)
    check_enabled(nlp, component_name)


def check_enabled(nlp: Language, component: str) -> None:
    """Check that the embedding components that a component listens to are enabled. RAISES C084: one is disabled."""
    for name in nlp.disabled:
        if component in getattr(nlp.get_pipe(name), "listening_components", ()):
            raise calib_error("C084", name=name, component=component)


def use_gpu(gpu_id: int, n_process: int) -> None:
    """Activate a GPU if gpu_id >= 0. RAISES C057: worker processes cannot share it. C060: there is no such GPU."""
    if gpu_id >= 0:
        from thinc.api import require_gpu

        if n_process > 1:
            raise calib_error("C057", gpu=gpu_id, n_process=n_process)
        try:
            require_gpu(gpu_id)
        except Exception as error:
            raise calib_error("C060", gpu=gpu_id, why=reason(error)) from None


def open_model(model: str, *, code: Path | None = None, gpu_id: int = -1, n_process: int = 1) -> Language:
    """Import the user's code, activate a GPU (see `use_gpu`) and load a pipeline. RAISES C062, C057, C060, C050: one failed."""
    import_user_code(code)
    use_gpu(gpu_id, n_process)
    return load_pipeline(model)


def fitted_pipes(nlp: Language) -> list[Calibrator]:
    """Return the fitted calib pipes of a pipeline. RAISES C027: there is none."""
    from .component import Calibrator

    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if not pipes:
        raise calib_error("C027", available=", ".join(nlp.component_names) or "no components")
    return pipes


def fitted_pipes_with(nlp: Language, attr: str | None) -> list[Calibrator]:
    """Return the fitted pipes with the prefix `attr`, or all if it is None. RAISES C027: no fitted pipe. C068: none with it."""
    available_pipes = fitted_pipes(nlp)
    pipes = [pipe for pipe in available_pipes if attr is None or pipe.attr == attr]
    if not pipes:
        raise calib_error("C068", attr=attr, available=", ".join(pipe.attr for pipe in available_pipes))
    return pipes


def units_of(pipe: Calibrator) -> tuple[str, ...]:
    """Return the names of the units that a calib pipe scores ("entity", "token" ...), the default first."""
    annotation = pipe.annotation
    if annotation.kind.of_documents:
        return ("document",)
    units = ("token", "sentence", "document")
    finds_entities = annotation.kind.of_links or (bool(pipe.lookup.span_labels()) and not annotation.kind.of_arcs)
    return ("entity", *units) if finds_entities else units


def check_unit(nlp: Language, pipes: Sequence[Calibrator], unit: str) -> None:
    """Check that one of the calib pipes scores units of this kind. RAISES C446: none does. C447: nothing sets sentences."""
    units_by_pipe = [units_of(pipe) for pipe in pipes]
    has_sentences = bool(sentence_finders(nlp))
    if not any(unit in units for units in units_by_pipe):
        all_units = dict.fromkeys(name for units in units_by_pipe for name in units)  # each once
        available = [name for name in all_units if name != "sentence" or has_sentences]
        defaults = [f"{pluralize(units[0])} ({pipe.attr})" for pipe, units in zip(pipes, units_by_pipe, strict=True)]
        raise calib_error("C446", unit=unit, known=", ".join(defaults), wanted=" or ".join(available))
    if unit == "sentence" and not has_sentences:
        raise calib_error("C447")


def sentence_finders(nlp: Language) -> list[str]:
    """Return the names of the pipes that set sentence boundaries."""
    return [name for name in nlp.pipe_names if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)]
