"""Whose statistics they are: what must be the same of two for them to be added up, and what tells shards apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from ..errors import calib_error
from ..schema import Saved, choice, kept, number, several, text, whole

# A shard that is called so is one of so many.
_ONE_OF_MANY = re.compile(r"(\d+)/(\d+)")
_NAMED = 8
_FEW = 3
_SHOWN = 60

# What an example is: of DATA as it is, or of the gold's own tokens.
WHOLE, SENTENCES = "whole documents", "sentences of gold tokens"

# How an error names what differs.
_CALLED = {
    "weights": "the weights of the component",
    "component": "the component",
    "kind": "the kind of component",
    "layer": "what is labelled",
    "labels": "the labels",
    "span_labels": "the labels of spans",
    "threshold": "the threshold (--threshold)",
    "lowest": "the lowest score",
    "event": "when a span is right (--event)",
    "source": "the settings of the source",
    "label_map": "the label map (--map)",
    "features": "the features of the context",
    "sample": "the size of the sample (--sample)",
    "reading": "what is read (--gold-preproc)",
    "fit": "the fit of the calib pipe",
    "key": "the key of their digests (--key)",
}


@dataclass(frozen=True)
class Identity(Saved):
    """weights (str): `sources.fingerprint` of the component's weights. component, kind (str): Its name and type.
    layer (str): The annotation that its labels are of. labels, span_labels (tuple[str, ...]): Columns of the tables.
    threshold (float): Lower scores are in no table. lowest (float): Lower scores are not in the sample either.
    event (str): When a span is right. source, label_map (str): Settings, as JSON. features (tuple[str, ...]): Users'
        features of the context that were asked. sample (int): Pairs, of `Sample`. reading (str): WHOLE or SENTENCES.
    fit (str): Digest of what the calib pipe learned; "" for statistics that a pipe is to be fitted on.
    key (str): Fingerprint of the `Key` of all digests; "" without one.
    """

    weights: str = kept(text)
    component: str = kept(text)
    kind: str = kept(text)
    layer: str = kept(text)
    labels: tuple[str, ...] = kept(several(text))
    span_labels: tuple[str, ...] = kept(several(text))
    threshold: float = kept(number(0.0, 1.0))
    lowest: float = kept(number(0.0, 1.0))
    event: str = kept(text)
    source: str = kept(text)
    label_map: str = kept(text)
    features: tuple[str, ...] = kept(several(text))
    sample: int = kept(whole(1))
    reading: str = kept(choice(WHOLE, SENTENCES), WHOLE)
    fit: str = kept(text, "")
    key: str = kept(text, "")

    def check_same(self, other: Identity, one: str, another: str) -> None:
        """RAISES C425: they differ. one, another (str): What the two belong to, for the message."""
        for part in fields(Identity):
            mine, theirs = getattr(self, part.name), getattr(other, part.name)
            if mine != theirs:
                given, wanted = _apart(mine, theirs)
                raise calib_error(
                    "C425", one=one, another=another, what=_CALLED[part.name], given=given[:_SHOWN], wanted=wanted[:_SHOWN]
                )


def reading_of(gold_preproc: bool) -> str:
    """What an example is. gold_preproc (bool): Whether the gold's tokens are taken (`doc.reading.GoldReader`)."""
    return SENTENCES if gold_preproc else WHOLE


def _apart(mine: Any, theirs: Any) -> tuple[str, str]:
    """What two values differ in, as words; for long lists the first label that differs."""
    if isinstance(mine, tuple):
        first = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), min(len(mine), len(theirs)))
        both = (
            f"{len(one)} labels, number {first + 1} {one[first]!r}" if first < len(one) else f"{len(one)} labels"
            for one in (mine, theirs)
        )
        return next(both), next(both)
    return str(mine) or "none", str(theirs) or "none"


@dataclass(frozen=True, order=True)
class Shard(Saved):
    """A part of the data. name (str): As it was called. digest (str): Of its content. documents (int): Read of it."""

    name: str = kept(text)
    digest: str = kept(text)
    documents: int = kept(whole())


def called(shards: Sequence[Shard]) -> str:
    """How messages call the statistics of some shards."""
    names = ", ".join(f"'{shard.name}'" for shard in shards[:_FEW])
    return f"shard {names}" + (" and others" if len(shards) > _FEW else "")


def is_shard_name(name: str) -> bool:
    """Whether a shard can be called so: any name but an empty one; "i/7" needs i from 1 to 7."""
    match = _ONE_OF_MANY.fullmatch(name)
    return bool(name.strip()) if match is None else 1 <= int(match[1]) <= int(match[2])


def joined_shards(parts: Sequence[Sequence[Shard]]) -> tuple[Shard, ...]:
    """The shards of all parts by name. RAISES C426: one is there twice, by its name or its content."""
    shards = sorted(shard for part in parts for shard in part)
    by_content: dict[str, Shard] = {}
    for shard, before in zip(shards, [None, *shards], strict=False):
        twice = before if before is not None and before.name == shard.name else None
        if shard.documents:
            twice = twice or by_content.get(shard.digest)
            by_content[shard.digest] = shard
        if twice is not None:
            why = "" if twice.digest == shard.digest else ", with other content"
            why = why if twice.name == shard.name else f", also as '{twice.name}'"
            raise calib_error("C426", name=shard.name, why=why)
    return tuple(shards)


def check_complete(shards: Sequence[Shard]) -> None:
    """RAISES C428: some shards are called "2/7", and others of the seven are missing."""
    named = [match for shard in shards if (match := _ONE_OF_MANY.fullmatch(shard.name))]
    for total in sorted({match[2] for match in named}):
        held, numbers = {int(match[1]) for match in named if match[2] == total}, range(1, int(total) + 1)
        n_missing = len(numbers) - sum(number in numbers for number in held)
        if n_missing:
            first = islice((f"{number}/{total}" for number in numbers if number not in held), _NAMED)
            more = f" and {n_missing - _NAMED:,} more" if n_missing > _NAMED else ""
            raise calib_error("C428", n=len(held), total=total, missing=", ".join(first) + more)
