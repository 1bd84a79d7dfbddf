"""Load damaged saved states whose checksum is right, predict with them and show them: every failure must be a sentence with a code.

    python scripts/tools/fuzz_state.py ./calibrated --cases 10000
    python scripts/tools/fuzz_state.py --cases 100 --bytes

Each component of ours of these pipelines (none: of small ones of each kind, from the tests) is taken apart, one to three
places of its saved state are changed at random (values, types, lengths, keys), and the state is put back with a checksum of its
own; with `--bytes` its bytes are changed instead, and no checksum. Bad is an exception without a code, a score outside [0, 1], a
refused load that leaves the pipe changed, a sentence that prints what was given at length, an accepted state that cannot be saved
again, and a garbage collector that stays off. An accepted state gives the same answers, or others; it may differ in facts alone.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import io
import json
import random
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import srsly
from spacy.language import Language

from spacy_calib import CalibError
from spacy_calib.cli.info_command import describe, show_info

sys.path.append(str(Path(__file__).resolve().parents[1]))  # what scripts share

from frame import ROOT, make_parser

TEXT = "the old dog saw Jordan in New York ."
WHEN_LOADED = ("C010", "C011", "C012", "C335", "C336", "C298", "C299")
# spaCy reads and runs these components: commands make sentences of its exceptions.
SPACYS = ("calib_ner", "calib_beam_ner", "calib_parser")
FACTORIES = ("calib", *SPACYS)
# Longer than any sentence with the lists of what is allowed in it, and shorter than any with a state in it.
LONGEST = 400
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 2.0, 0.5, -0.0, 1e300, -1e300, 1e-300, float("nan"), float("inf"), float("-inf"), 2**31, 2**53, 2**63 - 1,
    -(2**63), 2**64 - 1, 10**9, "", "x", "all", "NOUN", "a" * 5000, "\ud800", "\x00", b"\x00", [], [None], ["x"], [[0.5]], {}, {"x": 1}, {1: 2},
    np.zeros(0), np.ones(1), np.full(3, np.nan), np.array([2.0]), np.zeros((2, 2)), np.array(0.5), np.array([True]), np.array([2**31]),
    np.array([2**63 - 1]), np.array(["x"]), np.array([1 + 2j]), np.float32(0.5), np.int64(7), np.zeros((0, 1 << 30)),
]  # fmt: skip
# Registered names, so that a part is taken for another one.
NAMES = [f"spacy-calib.{name}.v1" for name in ("Identity", "Isotonic", "Histogram", "Platt", "Beta", "ScalingBinning",
         "MatrixScaling", "VectorScaling", "TemperatureScaling", "None")]  # fmt: skip


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything below a tree of dicts and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from places(value)


def mutate(tree: dict[str, Any], rng: random.Random) -> None:
    """Change one place: any of all, or one that is reached by as many choices as it lies deep (a table of trials holds most of all places)."""
    all_places = list(places(tree))
    if not all_places:
        return
    holder, key = rng.choice(all_places) if rng.random() < 0.4 else _descend(tree, rng)
    value = holder[key]
    kind = rng.random()
    if isinstance(value, np.ndarray) and kind < 0.7:
        holder[key] = changed_array(value, rng)
    elif isinstance(value, (dict, list)) and kind < 0.5:
        change_container(value, rng)
    elif isinstance(value, str) and kind < 0.4:
        holder[key] = rng.choice(NAMES)
    elif kind < 0.6:
        source_place, target = rng.choice(all_places)
        holder[key] = copy.deepcopy(source_place[target])
    else:
        holder[key] = copy.deepcopy(rng.choice(VALUES))


def _descend(tree: Any, rng: random.Random) -> tuple[Any, Any]:
    """A place below a tree that is not empty."""
    key = rng.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
    child = tree[key]
    if isinstance(child, (dict, list)) and child and rng.random() < 0.9:
        return _descend(child, rng)
    return tree, key


def change_container(value: Any, rng: random.Random) -> None:
    """Drop, rename, repeat or exchange what a dict or list holds, or add to it."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    kind = rng.choice(["drop", "add", "swap", "repeat"]) if keys else "add"
    if kind == "drop":
        del value[rng.choice(keys)]
    elif kind == "swap":
        key, source_place = rng.choice(keys), rng.choice(keys)
        value[key], value[source_place] = value[source_place], value[key]
    elif isinstance(value, dict):
        value[rng.choice(["x", "", "alone", "pooling", "y_"])] = rng.choice(VALUES)
    else:
        value.append(copy.deepcopy(value[rng.choice(keys)] if kind == "repeat" else rng.choice(VALUES)))


def changed_array(value: Any, rng: random.Random) -> Any:
    """The array with another element, type, length, order or shape."""
    kind = rng.choice(["element", "element", "element", "type", "cut", "longer", "order", "shape", "scale"])
    if kind == "element" and value.size:
        damaged_value = value.copy()
        with np.errstate(all="ignore"):
            factor = rng.choice([-1, 0, 1, 2, 0.5, 2**31, 2**53, 1e18, 1e300, -1e300, np.nan, np.inf, -np.inf])
            damaged_value.flat[rng.randrange(value.size)] = np.array(factor).astype(value.dtype)
        return damaged_value
    if kind == "type" and value.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            return value.astype(rng.choice(["f4", "f2", "i8", "i1", "u8", "?", "U5", "c16", "S3"]))
    if kind == "cut" and value.size and value.ndim:
        return value[: rng.randrange(len(value))].copy()
    if kind == "longer" and value.size and value.ndim:
        return np.concatenate([value, value[-1:]] * rng.choice([1, 2]))
    if kind == "order" and value.ndim:
        return value[::-1].copy()
    if kind == "scale" and value.dtype.kind in "fiu":
        with np.errstate(all="ignore"):
            return value * np.array(rng.choice([-1, 0, 2, 1000])).astype(value.dtype)
    return value.reshape(1, *value.shape) if rng.random() < 0.5 else value.reshape(-1, 1)


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """The bytes cut off, or with one changed, inserted or left out."""
    i, change = rng.randrange(len(data) or 1), rng.choice(("cut", "change", "insert", "leave out"))
    if change == "cut":
        return data[:i]
    piece = bytes([rng.randrange(256)])
    return data[:i] + {"change": piece, "insert": piece + data[i : i + 1], "leave out": b""}[change] + data[i + 1 :]


def unpack_state(data: bytes) -> dict[str, Any]:
    """What a component of ours saved, down to numbers and texts."""
    outer: Any = srsly.msgpack_loads(data)
    is_spacys = "body" not in outer
    spacys = {"cfg": srsly.json_loads(outer["cfg"]), "model": outer["model"]} if is_spacys else {}
    state = {"state": spacys} if is_spacys else srsly.msgpack_loads(outer["body"])
    fields = state.get("state")
    if isinstance(fields, dict) and "model" in fields:
        model = srsly.msgpack_loads(fields["model"])
        model["attrs"] = [{key: srsly.msgpack_loads(value) for key, value in attrs.items()} for attrs in model["attrs"]]
        fields["model"] = model
    return {"state": state}


def pack_state(tree: dict[str, Any], data: bytes) -> bytes:
    """The bytes of such a tree. data (bytes): As they were; what is not in the tree is theirs."""
    outer: Any = srsly.msgpack_loads(data)
    state = tree.get("state")
    fields: Any = state.get("state") if isinstance(state, dict) else None
    model = fields.get("model") if isinstance(fields, dict) else None
    if isinstance(model, dict):
        attrs = model.get("attrs")
        if isinstance(attrs, list):
            packed = (
                {key: srsly.msgpack_dumps(value) for key, value in one.items()} if isinstance(one, dict) else one
                for one in attrs
            )
            model["attrs"] = list(packed)
        fields["model"] = srsly.msgpack_dumps(model)
    if "body" not in outer:  # of spaCy's own form
        packed_cfg = {"cfg": srsly.json_dumps(fields["cfg"]).encode("utf8")} if "cfg" in fields else {}
        return srsly.msgpack_dumps({**outer, **fields, **packed_cfg})
    body = srsly.msgpack_dumps(state)
    return srsly.msgpack_dumps({**outer, "body": body, "crc": zlib.crc32(body)})


class Fuzzer:
    """Loads damaged states into one component of a pipeline.

    nlp (Language): As it is after the last case, so that one that went wrong does not bear on the next. name (str): Of the component.
    made (Any): Docs to predict on, of a pipeline; None lets the pipeline make one of TEXT. as_bytes (bool): Damages bytes.
    """

    def __init__(self, nlp: Any, name: str = "calib", made: Any = None, as_bytes: bool = False):
        self.nlp, self.name, self.as_bytes = nlp, name, as_bytes
        self.made = made or (lambda nlp: [nlp.make_doc(TEXT)])
        pipe: Any = nlp.get_pipe(name)
        self.pipe = pipe
        self.is_spacys = isinstance(nlp, Language) and nlp.get_pipe_meta(name).factory in SPACYS
        self.whole: bytes = self.pipe.to_bytes()
        self.answers = self._use()

    def damaged(self, seed: int) -> bytes:
        """The state with one to three places changed."""
        rng = random.Random(seed)
        while True:
            tree = unpack_state(self.whole)
            for _ in range(rng.choice([1, 1, 2, 3])):
                mutate(tree, rng)
            with contextlib.suppress(Exception):  # lone surrogates cannot be written
                data = damaged_bytes(self.whole, rng) if self.as_bytes else pack_state(tree, self.whole)
                if data != self.whole:
                    return data

    def try_one(self, seed: int) -> tuple[str, str]:
        """(what became of it, what is bad about that: "" if nothing)."""
        data, old_data = self.damaged(seed), self.pipe.to_bytes()  # with words that its vocab met meanwhile
        try:
            self.pipe.from_bytes(data)
        except CalibError as error:
            return error.code, self._refused(error, old_data)
        except Exception as error:
            if self.is_spacys:
                self.pipe.from_bytes(self.whole)
            return "spaCy's", "" if self.is_spacys else f"load: {error!r}"
        try:
            answers = self._use()
            return "the same" if answers == self.answers else "other facts" if answers[0] == self.answers[
                0
            ] else "other answers", ""
        except CalibError as error:
            return f"{error.code} at use", f"cannot be saved: {error}" if error.code in WHEN_LOADED else ""
        except Exception as error:
            return "fails at use", "" if self.is_spacys else f"use: {error!r}"
        finally:
            self.pipe.from_bytes(self.whole)

    def _refused(self, error: CalibError, old_data: bytes) -> str:
        if error.code not in (*WHEN_LOADED, "C020"):
            return f"refused as {error.code}"
        if len(str(error)) > LONGEST or "a" * 60 in str(error) or "\n" in str(error):
            return f"prints what was given: {error}"
        if self.pipe.to_bytes() != old_data:
            return "a refused load changed the pipe"
        return "" if gc.isenabled() else "the collector stays off"

    def _use(self) -> tuple[list[bytes], Any]:
        """Predict with it, show it, save it. RETURNS: (what it predicts, what `info` shows)."""
        docs, facts = list(self.nlp.pipe(self.made(self.nlp))), None
        if type(self.pipe).__name__ == "Calibrator":
            for doc in docs:
                facts = self._show(doc)
        self.pipe.from_bytes(self.pipe.to_bytes())
        return [doc.to_bytes() for doc in docs], facts

    def _show(self, doc: Any) -> str:
        numbers = [value for token in doc for value in _numbers(token)]
        for view in filter(None, (doc._.calib, doc._.calib_ent)):
            numbers += [*view.raw.tolist(), *view.calibrated.tolist(), *(span.score for span in (*view.ents, *view.candidates))]
        numbers += [value for key in doc.ents for value in (key._.calib_links or {}).values()]
        bad_numbers = [value for value in numbers if not 0 <= value <= 1]
        if bad_numbers:
            raise ValueError(f"scores outside [0, 1]: {bad_numbers}")
        facts = describe(self.pipe) if self.pipe.fitted else {}
        if facts:
            with contextlib.redirect_stdout(io.StringIO()):
                show_info(self.pipe, facts, True)
        return json.dumps(facts, allow_nan=False)


def _numbers(token: Any) -> list[float]:
    single = [token._.calib_score, token._.calib_raw, *(token._.calib_scores or {}).values()]
    return [value for value in single if value is not None]


def report(fuzzer: Fuzzer, title: str, seeds: range, totals: Counter[str]) -> int:
    """Try these cases and print what became of them. RETURNS (int): Bad ones."""
    counts: Counter[str] = Counter()
    bad: dict[str, list[int]] = {}
    for seed in seeds:
        outcome, wrong = fuzzer.try_one(seed)
        counts[outcome] += 1
        if wrong:
            bad.setdefault(wrong[:160], []).append(seed)
    print(f"{title}: {len(seeds):,} cases, " + ", ".join(f"{name} {n:,}" for name, n in counts.most_common()), flush=True)
    for wrong, cases in bad.items():
        print(f"  seed {cases[0]} and {len(cases) - 1} more: {wrong}")
    totals.update(counts)
    return sum(map(len, bad.values()))


def fuzzers(paths: list[Path], as_bytes: bool) -> Iterator[tuple[str, Fuzzer]]:
    """A fuzzer, with a title, for each component of ours in these folders, else for each kind of saved state of the tests."""
    for path in paths:
        nlp = spacy.load(path)
        for name in (name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory in FACTORIES):
            yield f"{path.name}, {name}", Fuzzer(nlp, name, as_bytes=as_bytes)
    if not paths:
        sys.path.insert(0, str(ROOT))
        states = importlib.import_module("tests.plugins.test_damaged_states").STATES
        yield from ((title, Fuzzer(make(), name, made, as_bytes)) for title, (make, name, made) in states.items())


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("pipelines", nargs="*", type=Path, help="folders of fitted pipelines; none: small ones of each kind")
    parser.add_argument("--bytes", action="store_true", help="damage bytes, and leave the checksum as it was")
    parser.add_argument("--cases", type=int, default=10_000, help="of each component")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    factor = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    seeds, totals = range(factor.seed, factor.seed + factor.cases), Counter[str]()
    n_bad = sum(report(fuzzer, title, seeds, totals) for title, fuzzer in fuzzers(factor.pipelines, factor.bytes))
    print(f"in all: {totals.total():,} cases, " + ", ".join(f"{name} {n:,}" for name, n in totals.most_common()))
    print(f"{n_bad} bad")
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
