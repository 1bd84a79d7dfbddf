"""Loads pipelines, and reports each failure in one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CalibError, brief, calib_error

if TYPE_CHECKING:
    from spacy.language import Language

    from .component import Calibrator

# Names of packages that `spacy download` knows.
_SPACY_NAMES = re.compile("[a-z]{2}_(core|dep|ent|sent)_(news|ud|web|wiki)_(sm|md|lg|trf)")


def reason(error: BaseException) -> str:
    """Return an exception in one line: the faults of a config error, else the first line of its message, else its type."""
    from thinc.api import ConfigValidationError

    if isinstance(error, ConfigValidationError):
        faults = [f"{' -> '.join(map(str, fault.get('loc', ())))}: {fault.get('msg', '')}" for fault in error.errors or ()]
        text = "; ".join(fault.strip(": ") for fault in faults) or " ".join(f"{error.title or ''} {error.desc or ''}".split())
        return text or type(error).__name__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def import_user_code(code: str | Path | None) -> None:
    """Import registered functions of the user. code: A file, or the name of a module. RAISES C062: it cannot be imported."""
    if code is not None:
        from spacy.util import import_file

        try:
            if isinstance(code, Path) or code.endswith(".py"):
                import_file("python_code", code)
            else:
                import_module(code)
        except Exception as error:
            raise calib_error("C062", path=code, why=reason(error)) from None


def load_pipeline(model: str, overrides: dict[str, Any] | None = None, exclude: Iterable[str] = ()) -> Language:
    """Load a pipeline. overrides (dict | None): Parts of the config to replace. exclude (Iterable[str]): Pipes to leave out.

    If nothing registers one of its components, the installed package that the pipeline was made from is imported first.
    RAISES C050: it cannot be loaded. C010 to C020: a calib pipe in it cannot be read.
    """
    from spacy.util import get_installed_models, load_model

    try:
        try:
            return load_model(model, config=overrides or {}, exclude=list(exclude))
        except (CalibError, OSError):
            raise
        except Exception:
            if not _import_pipeline_package(model):
                raise
            return load_model(model, config=overrides or {}, exclude=list(exclude))
    except CalibError:
        raise
    except OSError as error:
        if os.path.isfile(model):
            why = "it is a file, and a pipeline is a folder: MODEL comes first, then DATA."
            raise calib_error("C050", model=model, why=why) from None
        why = "no package, shortcut or folder of this name" if "E050" in str(error) else reason(error)
        download = f" (`python -m spacy download {model}`)" if _SPACY_NAMES.fullmatch(model) else ""
        models = ", ".join(get_installed_models()) or "none"
        why = f"{why}; install it{download}, or give the path of a pipeline or the name of an installed one ({models})."
        raise calib_error("C050", model=model, why=why) from None
    except ModuleNotFoundError as error:
        if error.name != model or "-" not in model:
            raise calib_error("C050", model=model, why=reason(error)) from None
        why = f"Python imports packages by names with underscores; give {model.replace('-', '_')}."
        raise calib_error("C050", model=model, why=why) from None
    except Exception as error:
        unknown = re.match(r"\[E002\] .*? factory for '(.*?)'", str(error))
        why = (
            f"nothing here registers its component '{unknown[1]}'; install the package that does, or give a Python file that defines "
            "or imports it (--code)."
            if unknown
            else reason(error)
        )
        raise calib_error("C050", model=model, why=why) from None


@contextlib.contextmanager
def component_faults(nlp: Language, names: Iterable[str] = (), passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn errors of a block that runs the components with these names, or saves the pipeline, into a CalibError.

    passing (tuple): Exceptions that are raised unchanged.
    RAISES C086: a component fails, and one of those that run is not trained. C490: a component fails otherwise.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (CalibError, *passing)):
            raise
        last = str(error).strip().rpartition("\n")[2]  # of a worker process spaCy gives the whole traceback
        if ours := re.fullmatch(r"spacy_calib\.CalibError: \[(\w+)\] (.*)", last):
            raise CalibError(ours[1], ours[2]) from None
        from ..sources.base import is_trained

        untrained = [name for name in names if not is_trained(nlp.get_pipe(name))]
        if untrained:
            raise calib_error("C086", component=untrained[0]) from None
        why = brief(last, 160) if "E871" in str(error) else f"{type(error).__name__}: {brief(error, 160)}"
        raise calib_error("C490", why=why) from error


def _import_pipeline_package(model: str) -> bool:
    """Import installed packages with a folder's language and pipeline name; return whether one was new."""
    pipeline_name = _name_in(Path(model))
    if pipeline_name is None:
        return False
    folders = [path.parent for entry in sys.path for path in Path(entry or ".").glob("*/meta.json")]
    names = [folder.name for folder in folders if (folder / "__init__.py").is_file() and _name_in(folder) == pipeline_name]
    packages = [name for name in dict.fromkeys(names) if name.isidentifier() and name not in sys.modules]
    for name in packages:
        with contextlib.suppress(Exception):  # loading the pipeline then fails again, which is reported
            import_module(name)
    return bool(packages)


def _name_in(folder: Path) -> tuple[str, str] | None:
    """Return language and name of a pipeline from its meta.json; None for a folder without one."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
        return meta["lang"], meta["name"]
    except (OSError, ValueError, LookupError, TypeError):
        return None


# spaCy's factories of recognizers and parser -> ours with the same settings and weights.
INLINE_FACTORIES = {"ner": "calib_ner", "beam_ner": "calib_beam_ner", "parser": "calib_parser"}


def load_with_factories(model: str, factories: dict[str, str], exclude: Iterable[str] = ()) -> Language:
    """Load a pipeline with other factories (component -> factory). RAISES C050, C010 to C020: as for `load_pipeline`."""
    return load_pipeline(model, {"components": {name: {"factory": factory} for name, factory in factories.items()}}, exclude)


def check_readable(nlp: Language, pipe: Calibrator) -> None:
    """Check that a pipe can read its component. RAISES C021: it is missing. C069, C084: a pipe that this needs is disabled."""
    component = pipe.source.component
    source = pipe.lookup.component()
    if component and source is None:
        raise calib_error("C021", component=component, available=", ".join(nlp.component_names))
    for name, candidate in nlp.components:
        if (candidate is pipe or candidate is source) and name not in nlp.pipe_names:
            raise calib_error("C069", name=name)
    check_enabled(nlp, component)


def check_enabled(nlp: Language, component: str) -> None:
    """Check that the components that a component listens to are enabled. RAISES C084: one is disabled."""
    for name in nlp.disabled:
        if component in getattr(nlp.get_pipe(name), "listening_components", ()):
            raise calib_error("C084", name=name, component=component)


def use_gpu(gpu_id: int, n_process: int) -> None:
    """Activate a GPU if one is requested. RAISES C057: worker processes cannot share it. C060: there is no such GPU."""
    if gpu_id >= 0:
        from thinc.api import require_gpu

        if n_process > 1:
            raise calib_error("C057", gpu=gpu_id, n_process=n_process)
        try:
            require_gpu(gpu_id)
        except Exception as error:
            raise calib_error("C060", gpu=gpu_id, why=reason(error)) from None


def open_model(model: str, *, code: Path | None = None, gpu_id: int = -1, n_process: int = 1) -> Language:
    """Import the user's code, activate the GPU and load a pipeline. RAISES C062, C057, C060, C050: one of them failed."""
    import_user_code(code)
    use_gpu(gpu_id, n_process)
    return load_pipeline(model)
