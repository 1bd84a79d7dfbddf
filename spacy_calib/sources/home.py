"""Which pipeline a pipe stands in. A calib pipe has to find the component that it calibrates, and spaCy does not tell a pipe where it is:
`add_pipe(source=...)` puts one and the same object into a second pipeline, and sets nothing but its name there. So whoever sets the name is
taken for a holder of the pipe, and the vocab of a Doc says which of several holders is at work.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any
from weakref import ref

from spacy.language import Language
from spacy.vocab import Vocab


class Home:
    """The pipelines that hold one pipe, as far as they are known; only the one it was built for is kept alive by it.

    pipe (Any): The pipe. nlp (Language | None): The pipeline that it is built for; held for as long as no other one takes the pipe.
    """

    def __init__(self, pipe: Any, nlp: Language | None):
        self.pipe = pipe
        self._built_for = nlp
        self._holders: list[ref[Language]] = [] if nlp is None else [ref(nlp)]
        self._last: ref[Language] | None = None
        self._searched = False

    def is_own(self, nlp: Language) -> bool:
        """Whether the pipe was built for this pipeline, and no other one took it."""
        return nlp is self._built_for

    def name_in(self, nlp: Language) -> str:
        """The pipe's name there; it knows only the one that it was given last."""
        return next((name for name, own in nlp.components if own is self.pipe), self.pipe.name)

    def named_by_caller(self) -> Language | None:
        """Remember the pipeline that sets the pipe's name, and return it; None where something else does.

        To be called by the setter of the name itself: the pipeline is the `self` of the function that called that setter.
        """
        nlp = language_above(3)
        if nlp is None:
            return None
        if all(known() is not nlp for known in self._holders):
            self._built_for = None
            self._holders.append(ref(nlp))
            self._searched = False
        return nlp

    def language(self, vocab: Vocab | None, read: Callable[[Language], Any]) -> Language | None:
        """The pipeline that runs the pipe.

        vocab (Vocab | None): Of the Docs; None takes the pipeline that ran the pipe last. read (Callable): What the pipe reads in a
            pipeline: several ones will do where it is the same thing in all of them.
        RETURNS (Language | None): None where that is not to be known, or no pipeline holds the pipe.
        """
        held = self.holders()
        last = None if self._last is None else self._last()
        if vocab is not None and len(held) > 1:
            held = [nlp for nlp in held if nlp.vocab is vocab]
        elif len(held) > 1 and any(nlp is last for nlp in held):
            held = [last]  # type: ignore[list-item]
        if len(held) > 1:
            last = None  # it would not be garbage as long as it has a name here
            held = self._without_garbage(held)
        if not held or (len(held) > 1 and len({id(read(nlp)) for nlp in held}) > 1):
            return None
        self._last = ref(held[0])
        return held[0]

    def holders(self) -> list[Language]:
        """Those that hold the pipe now; the one it was built for where none does."""
        found = [nlp for nlp in (known() for known in self._holders) if nlp is not None and _holds(nlp, self.pipe)]
        if not found and self._built_for is None and not self._searched:
            found = _search(self.pipe)
            self._holders = [ref(nlp) for nlp in found]
            self._searched = True
        return found or [nlp for nlp in [self._built_for] if nlp is not None]

    def restore_setting(self, block: str, setting: str, value: Any) -> None:
        """Write a setting into the pipelines' configs as it was given, where spaCy's config did not carry it unchanged, so that it is saved so.

        block, setting (str): Its block in the config of the pipe, and its name there.
        """
        for nlp in self.holders():
            config = nlp.get_pipe_config(self.name_in(nlp))
            if isinstance(config.get(block), dict):
                config[block][setting] = value

    @staticmethod
    def _without_garbage(held: list[Language]) -> list[Language]:
        """Those that somebody else holds too: a pipeline that was loaded only to take pipes from it lives on until garbage is collected."""
        known = [ref(nlp) for nlp in held]
        held.clear()
        gc.collect()
        return [nlp for nlp in (one() for one in known) if nlp is not None]

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and deepcopy: the pipeline goes along where there is one; where there are several, it is looked for in the copy."""
        held = self.holders()
        return {"pipe": self.pipe, "nlp": held[0] if len(held) == 1 else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["pipe"], state["nlp"])  # type: ignore[misc]


def language_above(depth: int) -> Language | None:
    """The pipeline whose method stands so many calls above, None where something else does: `add_pipe` sets the name of every pipe, and
    nothing else tells a pipe where it is.
    """
    caller = sys._getframe(depth).f_locals.get("self")
    return caller if isinstance(caller, Language) else None


def _holds(nlp: Language, pipe: Any) -> bool:
    # A pipeline that is being built or unpickled has no components yet.
    return any(own is pipe for _, own in getattr(nlp, "_components", ()))


def _search(pipe: Any) -> list[Language]:
    """The pipelines of this process that hold a pipe, found among all objects: for copies alone, it takes some hundredths of a second."""
    kinds, todo = {Language}, [Language]
    while todo:
        new = [kind for kind in todo.pop().__subclasses__() if kind not in kinds]
        kinds.update(new)
        todo += new
    return [nlp for nlp in gc.get_objects() if type(nlp) in kinds and _holds(nlp, pipe)]
