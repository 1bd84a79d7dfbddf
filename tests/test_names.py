"""Names say what they hold: no lone participle, preposition or pronoun, no class name twice."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "spacy_calib").rglob("*.py"))
# Besides these every word that ends in -ed, as `calibrated`: a participle may be the field's term, so a share is allowed.
WORDS = frozenset(
    [
        "told",
        "said",
        "made",
        "found",
        "held",
        "given",
        "kept",
        "known",
        "met",
        "left",
        "seen",
        "taken",
        "drawn",
        "shown",
        "gone",
        "lost",
        "put",
        "got",
        "done",
        "sent",
        "written",
        "chosen",
        "brought",
        "thought",
        "meant",
        "taught",
        "built",
        "sold",
        "bought",
        "caught",
        "behind",
        "beside",
        "around",
        "ahead",
        "apart",
        "alone",
        "above",
        "below",
        "within",
        "outside",
        "inside",
        "across",
        "over",
        "under",
        "between",
        "beyond",
        "before",
        "after",
        "further",
        "again",
        "still",
        "yet",
        "there",
        "here",
        "together",
        "twice",
        "once",
        "far",
        "near",
        "late",
        "early",
        "few",
        "some",
        "several",
        "many",
        "most",
        "more",
        "less",
        "least",
        "other",
        "others",
        "another",
        "one",
        "own",
        "every",
        "each",
        "both",
        "rest",
        "same",
        "such",
        "none",
        "only",
        "usual",
        "sure",
        "of",
        "at",
        "by",
        "what",
        "which",
        "whose",
    ]
)
NOUNS = frozenset(("seed", "need", "feed", "embed", "red"))


def is_lone_word(name: str) -> bool:
    word = name.strip("_").lower()
    return word in WORDS or (len(word) >= 5 and word.isalpha() and word.endswith("ed") and word not in NOUNS)


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def nodes() -> list[tuple[str, ast.AST]]:
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf8"))) for path in FILES]


def test_the_list_is_short():
    assert len(WORDS) <= 100


def test_at_most_one_name_in_forty_is_a_lone_word():
    names, odd = Counter(), Counter()
    for path, tree in nodes():
        room = path.rpartition("/")[0]
        for name in bound_names(tree):
            names[room] += 1
            odd[room] += is_lone_word(name)
    assert odd.total() <= 0.025 * names.total()
    assert [room for room in names if odd[room] > 0.05 * names[room]] == []


def test_classes_have_names_of_their_own_that_are_nouns():
    classes = [node.name for _, tree in nodes() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert [name for name, n in Counter(classes).items() if n > 1] == []
    assert [name for name in classes if is_lone_word(name)] == []


def test_no_function_is_called_of():
    names = [(path, node.name) for path, tree in nodes() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [path for path, name in names if name.strip("_") == "of"] == []


def test_rows_offsets_and_probabilities_are_called_so():
    words = Counter(part for _, tree in nodes() for name in bound_names(tree) for part in name.strip("_").lower().split("_"))
    assert words["place"] + words["places"] <= 20
    assert words["chance"] + words["chances"] <= 20
