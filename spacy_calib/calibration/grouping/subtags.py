"""Grouping of structured tags by a part that they share (CCG result, lexical category, part of speech, entity type)."""

# No `from __future__ import annotations` here, as in `pipe.factory`: confection must resolve the type of an argument.
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import calib_error
from ...pairs.bins import check_count
from ...types import Groups
from .tag_frequency import group_with_singletons, tag_frequency_groups

Split = Callable[[str], str]

_FEATURE = re.compile(r"(?<=.)\[[^\[\]]*\]$")
_LEX_POSITION = r"^[OoBbIi][_~]?"


def _main_slash(category: str) -> int:
    """Return the index of the last slash outside all brackets; -1 if there is none."""
    depth = 0
    for i in range(len(category) - 1, -1, -1):
        character = category[i]
        depth += (character in ")]") - (character in "([")
        if character in "/\\" and depth == 0:
            return i
    return -1


def ccg_result(category: str) -> tuple[str, int]:
    """Return (result, number of arguments) of a CCG category: "(S[dcl]\\NP)/NP" -> ("S[dcl]", 2); (tag, 0) for another tag."""
    if category.count("(") != category.count(")"):
        return category, 0
    arity = 0
    while True:
        cut = _main_slash(category)
        if cut > 0:
            category, arity = category[:cut], arity + 1
        elif cut < 0 and len(category) > 2 and category[0] == "(" and category[-1] == ")":
            category = category[1:-1]
        else:
            return category, arity


def _ccg_atom(category: str) -> str:
    return _FEATURE.sub("", ccg_result(category)[0])


def _ccg_featured_atom(category: str) -> str:
    return ccg_result(category)[0]


def _ccg_arity(category: str) -> str:
    return str(ccg_result(category)[1])


def feature_value(tag: str, name: str = "POS") -> str:
    """Return a feature of "Number=Sing|POS=NOUN" or "NOUN|Number=Sing" (a field without a name is POS); "_" for none."""
    for field in tag.split("|"):
        key, sign, value = field.partition("=")
        if sign and key == name:
            return value
        if not sign and name == "POS" and key:
            return key
    return "_"


def matched_part(tag: str, pattern: re.Pattern[str]) -> str:
    """Return the first non-empty group of the match, the whole match if the pattern has no groups, the tag without a match."""
    part = pattern.search(tag)
    if part is None:
        return tag
    parts = part.groups() or (part.group(),)
    return next(filter(None, parts), tag)


def _matching(pattern: str) -> Split:
    return partial(matched_part, pattern=re.compile(pattern))


# Scheme -> part -> function (tag) -> sub-tag; the first part is the default. "feats" has every other feature, too.
_SCHEMES: dict[str, dict[str, Split]] = {
    "ccg": {"result": _ccg_atom, "featured_result": _ccg_featured_atom, "arity": _ccg_arity},
    "lextag": {
        "lexcat": _matching(_LEX_POSITION + r"-([^-]+)"),
        "class": _matching(_LEX_POSITION + r"-([^-.]+)"),
        "supersense": _matching(_LEX_POSITION + r"-(?:[^-]+-)?(.+)$"),
        "position": _matching(r"^([OoBbIi][_~]?)(?:-|$)"),
    },
    "feats": {"POS": feature_value},
    "biluo": {"type": _matching(r"^[BILUESM]-(.+)$"), "position": _matching(r"^([BILUESMO])(?:-|$)")},
    "brown": {"base": _matching(r"^(?:FW-)?(?:([A-Z]+).*|(.+?)(?:-(?:TL|HL|NC))*)$")},
}


def find_split(scheme: str, part: str | None = None) -> Split:
    """Return the function (tag) -> sub-tag of a scheme and its part. RAISES C001: no such scheme, or part of it."""
    if scheme not in _SCHEMES:
        raise calib_error("C001", name="scheme", wanted=f"one of {', '.join(_SCHEMES)}", given=repr(scheme))
    parts = _SCHEMES[scheme]
    if part is None:
        return next(iter(parts.values()))
    if scheme == "feats" and isinstance(part, str) and part:
        return partial(feature_value, name=part)
    if part not in parts:
        raise calib_error("C001", name="part", wanted=f"one of {', '.join(parts)} for scheme '{scheme}'", given=repr(part))
    return parts[part]


def _singleton_groups(labels: Sequence[str], counts: Mapping[str, int]) -> Groups:
    """Put each label into its own group, named by it; the most frequent first, equally frequent ones by name."""
    order = sorted(range(len(labels)), key=lambda i: (-counts.get(labels[i], 0), labels[i]))
    of_tag = np.empty(len(labels), dtype=np.intp)
    of_tag[order] = np.arange(len(labels))
    return Groups(tuple(labels[i] for i in order), of_tag)


def subtag_groups(labels: Sequence[str], counts: Mapping[str, int], split: Split, n_groups: int | None = 5) -> Groups:
    """Put each tag into the tag frequency group (Kranzlein et al. 2021, section 3.3) of its sub-tag.

    A sub-tag is as frequent as its labels together; tags that the model does not know take no part.

    labels (Sequence[str]): The tags, as columns. counts (Mapping[str, int]): Gold frequency; a missing tag counts 0.
    split (Callable): Label -> sub-tag. n_groups (int | None): G; None puts each sub-tag into its own group, named by it.
    RETURNS (Groups): Of the labels.
    RAISES C001: n_groups is neither None nor a whole number of at least 1, or the split gives no string.
    """
    grouping: Callable[[Sequence[str], Mapping[str, int]], Groups] = _singleton_groups
    if n_groups is not None:
        grouping = partial(tag_frequency_groups, n_groups=check_count("n_groups", n_groups))
    subtags: dict[str, Any] = {label: split(label) for label in labels}
    for label, subtag in subtags.items():
        if not isinstance(subtag, str):
            raise calib_error("C001", name=f"the sub-tag of {label!r}", wanted="a string", given=repr(subtag))
    known_labels = {label: counts.get(label, 0) for label in labels}
    return group_with_singletons(grouping, labels, known_labels, key=subtags.__getitem__)


def make_subtag_grouping(
    scheme: str | None = None,
    part: str | None = None,
    pattern: str | None = None,
    split: Split | None = None,
    n_groups: int | None = 5,
) -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
    """Make the grouping of tags that share a part. Registered as spacy-calib.Subtags.v1. Give one of scheme, pattern and split.

    scheme (str | None): What the tags are made of. A tag that is not of this form is its own sub-tag.
        "ccg": CCG categories. Parts: result ("(S[dcl]\\NP)/NP" -> "S"), featured_result ("S[dcl]"), arity ("2").
        "lextag": STREUSLE's lextags. Parts: lexcat ("B-V.VPC.full-v.motion" -> "V.VPC.full"), class ("V"),
        supersense ("v.motion", or else the lexcat), position ("B").
        "feats": UPOS and features. Parts: POS ("Number=Sing|POS=NOUN" -> "NOUN") or any feature ("_" without it).
        "biluo": BILUO, IOB or BMES tags. Parts: type ("B-PER" -> "PER"), position ("B").
        "brown": the Brown corpus's tags. Parts: base ("FW-NN$-TL" -> "NN", "PPSS+MD" -> "PPSS").
    part (str | None): Which part of a scheme; None takes the first.
    pattern (str | None): Regular expression searched in the tag: the sub-tag is its first group that matched, the whole
        match if it has no groups, the whole tag if nothing matches.
    split (Callable | None): Tag -> sub-tag: in a config a block of a function registered by the user, as in
        [components.calib.grouping.split] with @misc = "my_split.v1".
    n_groups (int | None): Number of tag frequency groups of the sub-tags; None: each sub-tag its own group.
    RETURNS (Callable): (labels, counts) -> Groups; it can be pickled if the split can.
    RAISES C001: none or several of scheme, pattern and split; a part without a scheme; an unknown scheme or part; a
        pattern that does not compile; n_groups neither None nor a whole number of at least 1.
    """
    settings = {"scheme": scheme, "pattern": pattern, "split": split}
    ways = [name for name, value in settings.items() if value is not None]
    if len(ways) != 1:
        raise calib_error(
            "C001", name="The way to split tags", wanted="one of scheme, pattern and split", given=" and ".join(ways) or "none"
        )
    if n_groups is not None:
        check_count("n_groups", n_groups)
    if part is not None and scheme is None:
        raise calib_error("C001", name="part", wanted="left out without a scheme", given=repr(part))
    if scheme is not None:
        split = find_split(scheme, part)
    elif pattern is not None:
        try:
            split = _matching(pattern)
        except re.error as err:
            raise calib_error("C001", name="pattern", wanted=f"a regular expression ({err})", given=repr(pattern)) from err
    elif not callable(split):
        raise calib_error("C001", name="split", wanted="a function (tag) -> sub-tag", given=repr(split))
    assert split is not None
    return partial(subtag_groups, split=split, n_groups=n_groups)
