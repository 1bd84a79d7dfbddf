"""Access to private parts of spaCy and thinc: all that this package uses, and what happens with versions that lack a part.

| private part | tried in | used for | without it |
| --- | --- | --- | --- |
| `Language._components`, `_pipe_meta`, `_pipe_configs`, `_disabled` | spaCy 3.7, 3.8 | undo a refused card | its pipes stay |
| `Shim._model` | thinc 8.2, 8.3 | weights of torch modules | no warning of other weights than at the fit |
| `PyTorchShim._mixed_precision` | thinc 8.2, 8.3 | warning CW24 | a fit does not warn of mixed precision |
| `("._.", name, start, end)` | spaCy 3.7, 3.8 | keys that move with the text | Docs that were cut or joined have no scores |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.language import Language

_PIPES = ("_components", "_pipe_meta", "_pipe_configs", "_disabled")  # where a Language keeps its pipes
# First part of the keys of `Doc.user_data` whose third and fourth parts spaCy moves when it cuts and joins Docs.
EXTENSION_KEY = "._."


@contextmanager
def pipes_restored_on_failure(nlp: Language) -> Iterator[None]:
    """Put the pipes of a pipeline back as they were if the body of the `with` statement fails."""
    pipes = {name: copy(getattr(nlp, name)) for name in _PIPES if hasattr(nlp, name)}  # a version of spaCy may lack one
    try:
        yield
    except BaseException:
        vars(nlp).update(pipes)
        raise


def torch_module(shim: Any) -> Any:
    """Return the torch module that a shim of thinc wraps, or None."""
    return getattr(shim, "_model", None)


def has_mixed_precision(shim: Any) -> bool:
    """Return whether a shim of thinc computes with torch's mixed precision, which it does on a GPU only."""
    return bool(getattr(shim, "_mixed_precision", False))
