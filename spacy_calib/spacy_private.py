"""What this package uses of spaCy and thinc that they keep private: all of it, with what happens where a version lacks it.

| private part | tried in | used for | without it |
| --- | --- | --- | --- |
| `Language._pipe_meta` | spaCy 3.7, 3.8 | what a pipe reads and assigns | `nlp.analyze_pipes` shows what the factory sets by default |
| `Shim._model` | thinc 8.2, 8.3 | weights of torch modules | other weights than at the fit give no warning if they are torch's |
| `PyTorchShim._mixed_precision` | thinc 8.2, 8.3 | warning CW24 | a fit does not warn of mixed precision |
| `("._.", name, start, end)` | spaCy 3.7, 3.8 | keys of `Doc.user_data` that move with the text | a Doc that was cut or joined has no scores |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.language import FactoryMeta, Language

# First part of the keys of `Doc.user_data` whose third and fourth parts spaCy moves when it cuts and joins Docs.
EXTENSION_KEY = "._."


def set_pipe_meta(nlp: Language, name: str, meta: FactoryMeta) -> None:
    """Replace the facts about a pipe of a pipeline that `nlp.get_pipe_meta` returns."""
    getattr(nlp, "_pipe_meta", {})[name] = meta


def torch_module(shim: Any) -> Any:
    """Return the module that a shim of thinc wraps, or None."""
    return getattr(shim, "_model", None)


def has_mixed_precision(shim: Any) -> bool:
    """Return whether a shim of thinc computes with torch's mixed precision, which it does on a GPU only."""
    return bool(getattr(shim, "_mixed_precision", False))
