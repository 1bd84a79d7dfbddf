"""What stands in the registries, by the short names of the command line and of the settings; and the selection that asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..calibration.auto import Selector
from ..calibration.recalibrators import Recalibrator
from ..calibration.scaling import Scaling
from ..context.features import Feature, FromDocs
from ..context.tokens import TokenContext
from ..errors import calib_error
from ..registry import needs_nothing, prototypes, registry

# What the registered names of this package begin with.
_OURS = "spacy-calib."
Prototype = TypeVar("Prototype", Recalibrator, Scaling)


def recalibrators() -> dict[str, Recalibrator]:
    """Short name -> prototype, those with the fewest free numbers first; `prototype.registered` is its full name.

    RAISES C185: two of them have one short name.
    """
    found = _by_short("calib_recalibrators")
    return dict(sorted(found.items(), key=lambda named: (named[1].n_parameters, named[0])))


def scalings() -> dict[str, Scaling]:
    """Short name -> prototype, those with the fewest numbers first. RAISES C185: two of them have one short name."""
    return _scalings()


def _scalings() -> dict[str, Scaling]:
    return dict(sorted(_by_short("calib_scalings").items(), key=lambda named: named[1].growth))


def metrics() -> dict[str, Any]:
    """Short name -> metric. RAISES C185: two of them have one short name."""
    return _by_short("calib_metrics")


def _by_short(registry: str) -> dict[str, Any]:
    """What has no short name of its own is called by its registered one. RAISES C185: two of them have one short name."""
    found: dict[str, Any] = {}
    owner: dict[str, str] = {}
    # Those of this package in front: what is registered elsewhere adds rows behind.
    made_by = sorted(prototypes(registry).items(), key=lambda named: not named[0].startswith(_OURS))
    for name, made in made_by:
        # A function that presets what another one makes too has no claim to the short name of the class.
        short = (_own_short(made) if getattr(made, "registered", name) == name else "") or name
        if short in found:
            raise calib_error("C185", short=short, registry=registry, first=owner[short], second=name)
        found[short], owner[short] = made, name
    return found


def _own_short(made: object) -> str:
    """The short name that the object or its class gives itself; "" for one that was inherited, which is another's."""
    return {**vars(type(made)), **getattr(made, "__dict__", {})}.get("short", "")


def make_selector(
    n_folds: int = 5,
    n_groups: list[int] = [1, 3, 5, 12],  # noqa: B006  (the config's default; never changed)
    one_vs_rest: bool = True,
    methods: list[str] | None = None,
    scalings: list[str] | None = None,
) -> Selector:
    """Registered as spacy-calib.Auto.v1. See Selector.

    methods, scalings (list[str] | None): Short names; None tries every registered one whose class says `tried_by_auto`.
    RAISES C001: a setting out of range. C185: two registered things have one short name.
    """
    maps: dict[str, Recalibrator] = _named("methods", methods, recalibrators())
    before: dict[str, Scaling] = _named("scalings", scalings, _scalings())
    return Selector(maps, before, n_folds, n_groups, one_vs_rest)


def make_context(when: str = "always", features: list[str] | None = None, shrinkage: float = 10.0) -> TokenContext:
    """Registered as spacy-calib.Context.v1. See TokenContext.

    features (list[str] | None): Short or registered names; "*" stands for all of this package, as None does.
    RAISES C001: a setting out of range. C185: two features have one short name. C201: a feature that is not registered. C205: a registered
        function that makes none.
    """
    ours = [name for name, made in _features().items() if made.registered.startswith(_OURS)]
    names = [one for name in (["*"] if features is None else features) for one in (ours if name == "*" else [name])]
    return TokenContext([_feature(name) for name in dict.fromkeys(names)], when, shrinkage)


def _features() -> dict[str, Any]:
    return {name: made for name, made in _by_short("calib_features").items() if isinstance(made, Feature)}


def _feature(name: str) -> Feature:
    """The feature of a short or a registered name."""
    known = _features()
    found = known.get(name) or next((made for made in known.values() if made.registered == name), None)
    if found is not None:
        return found
    functions = registry.calib_features
    if name not in functions:
        others = set(functions.get_all()) - {made.registered for made in known.values()}
        raise calib_error("C201", given=name, known=", ".join([*known, *sorted(others)]))
    function = functions.get(name)
    made = function() if needs_nothing(function) else function  # a registered function may be the feature, or make it
    if not callable(made):
        raise calib_error("C205", name=name, given=type(made).__name__)
    return FromDocs(name, made)


def _named(setting: str, names: Sequence[str] | None, known: Mapping[str, Prototype]) -> dict[str, Prototype]:
    """Those of these names, in their order; None for those that `auto` tries by itself. RAISES C001: a name that is not known."""
    if names is None:
        return {name: prototype for name, prototype in known.items() if prototype.tried_by_auto}
    unknown = [name for name in names if name not in known]
    if unknown or (setting == "methods" and not names):
        raise calib_error("C001", name=setting, wanted=f"some of {', '.join(known)}", given=unknown or "none")
    return {name: known[name] for name in names}
