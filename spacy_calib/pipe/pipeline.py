"""Loads pipelines, with a one-sentence error for each failure, finds their calib pipes, and describes these in the meta."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..annotations import EXTENSION_PREFIX, SPANS_PREFIX, kind_of, plain_name
from ..errors import CalibError, brief, calib_error
from ..pairs.documents import count_in_words, pluralize
from ..spacy_private import set_pipe_meta
from .scorer import score_names

if TYPE_CHECKING:
    from spacy.language import Language

    from .component import Calibrator

# Names of packages that `spacy download` knows.
_SPACY_NAMES = re.compile("[a-z]{2}_(core|dep|ent|sent)_(news|ud|web|wiki)_(sm|md|lg|trf)")


def reason(error: BaseException) -> str:
    """Describe an exception in one line: the faults of a config error, else the first line of its message, else its type."""
    from thinc.api import ConfigValidationError

    if isinstance(error, ConfigValidationError):
        faults = [f"{' -> '.join(map(str, fault.get('loc', ())))}: {fault.get('msg', '')}" for fault in error.errors or ()]
        text = "; ".join(fault.strip(": ") for fault in faults) or " ".join(f"{error.title or ''} {error.desc or ''}".split())
        return text or type(error).__name__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def import_user_code(code: str | Path | None) -> None:
    """Import the user's code, which registers functions. code: A .py file, a module name or None. RAISES C062: it fails."""
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

    If that fails, packages of a pipeline with its name, which may register its components, are imported for a second try.
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
        why = reason(error)
        if unknown := re.match(r"\[E002\] .*? factory for '(.*?)'", str(error)):
            why = f"nothing here registers its component '{unknown[1]}'; install the package that does, or give a Python file "
            why += "that defines or imports it (--code)."
        raise calib_error("C050", model=model, why=why) from None


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
        last = str(error).strip().rpartition("\n")[2]  # for a worker process spaCy gives the whole traceback
        if calib_fault := re.fullmatch(r"spacy_calib\.CalibError: \[(\w+)\] (.*)", last):
            raise CalibError(calib_fault[1], calib_fault[2]) from None
        from ..sources.source import is_trained

        untrained = [name for name in names if not is_trained(nlp.get_pipe(name))]
        if untrained:
            raise calib_error("C086", component=untrained[0]) from None
        why = brief(last, 160) if "E871" in str(error) else f"{type(error).__name__}: {brief(error, 160)}"
        raise calib_error("C490", why=why) from error


def _import_pipeline_package(model: str) -> bool:
    """Import the installed packages with the language and pipeline name of the folder `model`; return whether any was new."""
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
    """Return (language, name) of a pipeline from the meta.json in its folder; None without a readable one."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
        return meta["lang"], meta["name"]
    except (OSError, ValueError, LookupError, TypeError):
        return None


# spaCy's factories of recognizers and parser -> ours with the same settings and weights.
INLINE_FACTORIES = {"ner": "calib_ner", "beam_ner": "calib_beam_ner", "parser": "calib_parser"}


def load_with_factories(model: str, factories: dict[str, str], exclude: Iterable[str] = ()) -> Language:
    """Load a pipeline with other factories (component name -> factory). RAISES C050, C010 to C020: it cannot be loaded."""
    return load_pipeline(model, {"components": {name: {"factory": factory} for name, factory in factories.items()}}, exclude)


def check_readable(nlp: Language, pipe: Calibrator) -> None:
    """Check that a calib pipe can read its component. RAISES C021: it is missing. C069, C084: a needed pipe is disabled."""
    component = pipe.source.component
    source = pipe.lookup.component()
    if component and source is None:
        raise calib_error("C021", component=component, available=", ".join(nlp.component_names))
    for name, candidate in nlp.components:
        if (candidate is pipe or candidate is source) and name not in nlp.pipe_names:
            raise calib_error("C069", name=name)
    check_enabled(nlp, component)


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
    """Import the user's code, activate the GPU and load a pipeline. RAISES C062, C057, C060, C050: one of them failed."""
    import_user_code(code)
    use_gpu(gpu_id, n_process)
    return load_pipeline(model)


# The calib pipes of a pipeline


def fitted_pipes(nlp: Language) -> list[Calibrator]:
    """Return the fitted calib pipes of a pipeline. RAISES C027: there is none."""
    from .component import Calibrator

    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if not pipes:
        raise calib_error("C027", available=", ".join(nlp.component_names) or "no components")
    return pipes


def fitted_pipes_with(nlp: Language, attr: str | None) -> list[Calibrator]:
    """Return the fitted pipes with this prefix, or all if None. RAISES C027: no fitted pipe. C068: none with this prefix."""
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
    units = [units_of(pipe) for pipe in pipes]
    has_sentences = bool(sentence_finders(nlp))
    if not any(unit in names for names in units):
        available = list(dict.fromkeys(name for names in units for name in names if name != "sentence" or has_sentences))
        available_units = [f"{pluralize(names[0])} ({pipe.attr})" for pipe, names in zip(pipes, units, strict=True)]
        raise calib_error("C446", unit=unit, known=", ".join(available_units), wanted=" or ".join(available))
    if unit == "sentence" and not has_sentences:
        raise calib_error("C447")


def sentence_finders(nlp: Language) -> list[str]:
    """Return the names of the pipes that set sentence boundaries."""
    return [name for name in nlp.pipe_names if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)]


# Annotation -> attributes that it is read from, as in the `requires` of spaCy's factories.
_READ_ATTRIBUTES = {
    "tag": ["token.tag"],
    "pos": ["token.pos"],
    "morph": ["token.pos", "token.morph"],
    "lemma": ["token.lemma"],
    "sent": ["token.is_sent_start"],
    "dep": ["token.dep"],
    "ent_type": ["token.ent_type"],
    "ner": ["doc.ents"],
    "biluo": ["doc.ents"],
    "link": ["doc.ents", "token.ent_kb_id"],
    "cats": ["doc.cats"],
    "cats:multi": ["doc.cats"],
}
# Attributes that are set on Docs with categories.
_DOC_ATTRIBUTES = ["doc._.calib", *(f"doc._.calib_{name}" for name in ("score", "raw", "cats", "cats_raw"))]


def facts(pipe: Any) -> dict[str, str]:
    """Return what a Calibrator shows about itself: "Name", "Calibrates", "Attributes", "Fitted" and, if fitted, "Method"."""
    info = pipe.fit_info
    source = pipe.source.component or "scores on the Doc"
    if not pipe.fitted:
        return {"Name": pipe.name, "Calibrates": source, "Attributes": f"{pipe.attr}_score", "Fitted": "no"}
    of_documents = "" if info.kind.of_documents else f" of {info.docs:,} documents"
    extents = [count_in_words(adaptation["unit"], adaptation["docs"]) for adaptation in info.adaptations]
    adaptations = "".join(f", adapted to {extent}" for extent in extents)
    return {
        "Name": pipe.name,
        "Calibrates": f"{source} ({plain_name(info.layer)})",
        "Attributes": f"{pipe.attr}_score",
        "Fitted": f"on {info.tokens:,} {info.kind.unit}s{of_documents}{adaptations}",
        "Method": pipe.learned.method,
    }


def note_meta(nlp: Language, name: str, pipe: Any) -> None:
    """Correct the meta of a calib pipe (`nlp.get_pipe_meta`): what it requires, assigns and scores under its actual settings.

    The factory declares these facts for the default settings. Nothing is done for a pipe that is not in the pipeline.
    """
    if all(other_pipe is not pipe for other_name, other_pipe in nlp.components if other_name == name):
        return
    meta = nlp.get_pipe_meta(name)
    layer = layer_of(nlp, pipe)
    attributes = nlp.get_factory_meta(meta.factory).assigns if not kind_of(layer).of_documents else _DOC_ATTRIBUTES
    # A pipe of entities may leave out the attributes of tokens.
    hidden = (".calib_score", ".calib_raw", ".calib_scores") if pipe.of_entities and not pipe.token_scores else ()
    shown = [attribute for attribute in attributes if not (attribute.startswith("token.") and attribute.endswith(hidden))]
    assigns = [attribute.replace("._.calib", f"._.{pipe.attr}") for attribute in shown]
    reads = meta.requires if not layer else _required_attributes(layer) or meta.requires
    scores = [f"{pipe.attr}_{score}{suffix}" for score in score_names() for suffix in ("", "_raw")] if pipe.scorer else []
    set_pipe_meta(nlp, name, replace(meta, requires=reads, assigns=assigns, scores=scores))


def _required_attributes(layer: str) -> list[str]:
    """Return the attributes that an annotation is read from, as in the `requires` of a factory."""
    if layer.startswith(EXTENSION_PREFIX):
        return [f"token.{layer}"]
    return ["doc.spans"] if layer.startswith(SPANS_PREFIX) else _READ_ATTRIBUTES.get(layer, [])


def layer_of(nlp: Language, pipe: Any) -> str:
    """Return the name of the annotation that a pipe calibrates; "" if its component is missing or of another type."""
    source = pipe.source
    if not source.component:
        return source.annotation(None).name
    if source.component not in nlp.component_names or not source.supports(nlp.get_pipe(source.component)):
        return ""
    return plain_name(source.annotation(nlp.get_pipe(source.component)).name)
