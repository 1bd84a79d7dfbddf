"""What is registered, by the names that the command line takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...errors import calib_error
from .checks import check_option

# Stands in the help of an option for the short names of what this registry holds.
_LISTED = re.compile(r"\{(calib_\w+)\}")


def known(registry: str) -> dict[str, Any]:
    """Short name -> what is registered. RAISES C185: two registered things have one short name."""
    from ...calibration.registered import recalibrators, scalings

    return dict(recalibrators() if registry == "calib_recalibrators" else scalings())


def check_registered(setting: str, registry: str, given: object) -> None:
    """RAISES C195: the registry has no function of this name."""
    from ...calibration.registered import REGISTRIES

    if given not in REGISTRIES[registry]:
        names = ", ".join(sorted(REGISTRIES[registry].get_all()))
        raise calib_error("C195", setting=setting, registry=registry, given=given, names=names)


def listed(help: str) -> str:
    """The help of an option, with the short names of what is registered in their place. Asked when the help is shown, as this imports whatever
    is registered.
    """
    return _LISTED.sub(lambda match: ", ".join(known(match[1])), help)


def registered_name(option: str, given: str, registry: str, others: Sequence[str] = ()) -> str:
    """The registered name of what an option gives by that name, or by the short one.

    others (Sequence[str]): Words that the option takes besides. RAISES C056: nothing of this name is registered.
    """
    from ...calibration.registered import REGISTRIES

    by_short = known(registry)
    if given in by_short and given not in REGISTRIES[registry]:
        return str(by_short[given].registered)
    what = registry.removeprefix("calib_").removesuffix("s")
    wanted = f"one of {', '.join((*others, *by_short))} or a registered {what}"
    check_option(option, given in REGISTRIES[registry], wanted, repr(given))
    return given
