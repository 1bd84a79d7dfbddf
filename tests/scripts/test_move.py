"""scripts/tools/move.py on a small repository: what is split and moved is named by its new place everywhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from code_digest import digest_of
from tools import move

FILES = {
    "spacy_calib/__init__.py": '_LATER = {"Event": ".doc.events:Event", "score": ".doc.scores"}\n',
    "spacy_calib/metrics/__init__.py": 'from .loss import loss\nfrom . import bins\n\n__all__ = ["loss", "bins"]\n',
    "spacy_calib/metrics/loss.py": '"""Losses."""\n\n\ndef loss():\n    return 1\n',
    "spacy_calib/metrics/bins.py": "EDGES = 10\n",
    "spacy_calib/doc/__init__.py": "",
    "spacy_calib/doc/events.py": (
        '"""Events of a Doc."""\n\nfrom __future__ import annotations\n\nimport json\n\nfrom ..metrics import bins, loss\n'
        "from ..metrics.loss import loss as own_loss\n\n# At most so many.\nMOST = 3\nFEW = 1\n\n\n"
        "class Event:\n    most = MOST\n\n\ndef hits():\n    return json.dumps([bins.EDGES, loss(), FEW])\n\n\n"
        "def misses():\n    return MOST - own_loss()\n"
    ),
    "spacy_calib/doc/scores.py": "import json\n\nfrom .events import Event, hits\n\nPAGE = 'spacy_calib/doc/events.py'\n",
    "spacy_calib/doc/page.css": "p {}\n",
    "spacy_calib/doc/words.py": "WORDS = 2\n",
    "tests/__init__.py": "",
    "tests/doc/__init__.py": "",
    "tests/doc/test_events.py": (
        "from spacy_calib.doc.events import Event, hits as hit\nfrom spacy_calib.metrics import bins, loss\n\n\n"
        "def test_it(monkeypatch):\n    from spacy_calib.doc import events\n\n    monkeypatch.setattr(events, \"MOST\", 2)\n"
    ),
    "docs/page.md": (
        "# Page\n\nSee `doc/events.py` and `doc/events.pyx`, `doc.events.Event.most` and `doc.eventful`.\n\n::: spacy_calib.doc.events.hits\n::: spacy_calib.metrics.loss\n\n"
        "```python\nfrom spacy_calib.doc.events import Event, hits\n```\n"
    ),
    "CHANGELOG.md": "spacy_calib.doc.events\n",
    "setup.cfg": (
        "[options.package_data]\nspacy_calib = py.typed\nspacy_calib.doc = *.css\n\n[options.entry_points]\n"
        "spacy_calib_events =\n    A = spacy_calib.doc.events:Event\n    B = spacy_calib.doc.events:hits\n"
    ),
}  # fmt: skip
PLAN = {
    "why": "Gold is no part of a Doc.",
    "split": {"spacy_calib/doc/events.py": {"spacy_calib/doc/gold.py": ["hits", "FEW"]}},
    "about": {"spacy_calib/doc/gold.py": "What the gold says."},
    "rooms": {
        "spacy_calib/gold": "Gold.", "spacy_calib/plugins": "Plug-ins.", "spacy_calib/plugins/events": "Events.", "tests/plugins": "",
        "tests/plugins/events": "",
    },
    "move": {
        "spacy_calib/doc/gold.py": "spacy_calib/gold/hits.py",
        "spacy_calib/doc/events.py": "spacy_calib/plugins/events/questions.py",
        "spacy_calib/doc/scores.py": "spacy_calib/plugins/events/scores.py",
        "spacy_calib/doc/page.css": "spacy_calib/plugins/events/page.css",
        "spacy_calib/doc/words.py": "spacy_calib/words.py",
        "spacy_calib/metrics/loss.py": "spacy_calib/metrics/losses.py",
        "tests/doc/__init__.py": "tests/plugins/events/__init__.py",
    },
    "drop": ["spacy_calib/doc/__init__.py"],
}  # fmt: skip


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch) -> Path:
    """A committed package, with figures of its room doc whose digest is that of its code."""
    root = tmp_path / "repository"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shared = {"page": "page.md", "command": "python tests/doc/test_events.py"}
    entries = [
        {**shared, "name": name, "measures": rooms, "code": digest_of(rooms, root)}
        for name, rooms in {"all": ["doc", "metrics"], "file": ["doc/events.py"]}.items()
    ]
    entries.append({**entries[0], "name": "old", "code": "older"})
    (root / "docs" / "figures.json").write_text(json.dumps(entries))
    monkeypatch.chdir(root)
    git("init", "-q")
    commit("before")
    git("tag", "before")
    return root


def commit(message: str) -> None:
    git("add", "--all")
    git("commit", "-q", "-m", message)


@pytest.fixture
def run(tmp_path: Path):
    """Run a step with a plan, which may be changed."""

    def run_step(step: str, **changes) -> int:
        (tmp_path / "plan.json").write_text(json.dumps({**PLAN, **changes}))
        return move.main([step, str(tmp_path / "plan.json")])

    return run_step


def test_a_split_leaves_modules_at_their_old_places(repository, run, capsys):
    assert run("split") == 0
    assert (repository / "spacy_calib/doc/gold.py").read_text() == (
        '"""What the gold says."""\n\nfrom __future__ import annotations\nimport json\nfrom ..metrics import bins, loss\n\n\n'
        "FEW = 1\n\n\ndef hits():\n    return json.dumps([bins.EDGES, loss(), FEW])\n"
    )
    events = (repository / "spacy_calib/doc/events.py").read_text()
    assert "FEW" not in events
    assert "hits" not in events
    assert "# At most so many.\nMOST = 3\n" in events
    assert "from .events import Event\nfrom .gold import hits\n" in (repository / "spacy_calib/doc/scores.py").read_text()
    test = (repository / "tests/doc/test_events.py").read_text()
    assert "from spacy_calib.doc.events import Event\nfrom spacy_calib.doc.gold import hits as hit\n" in test
    assert "B = spacy_calib.doc.gold:hits" in (repository / "setup.cfg").read_text()
    assert "::: spacy_calib.doc.gold.hits" in (repository / "docs/page.md").read_text()
    assert "spacy_calib/doc/gold.py" in move.git("ls-files")  # else `git clean` deletes it
    printed = capsys.readouterr().out
    assert "MOST is set by its name" not in printed  # it stays


def test_a_constant_left_behind_and_one_that_a_test_sets_are_told(repository, run, capsys):
    assert run("split", split={"spacy_calib/doc/events.py": {"spacy_calib/doc/gold.py": ["misses", "hits"]}}) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "stays" in line] == [
        "spacy_calib/doc/gold.py uses FEW, which stays in spacy_calib/doc/events.py.",
        "spacy_calib/doc/gold.py uses MOST, which stays in spacy_calib/doc/events.py.",
    ]
    git("reset", "-q", "--hard")
    assert run("split", split={"spacy_calib/doc/events.py": {"spacy_calib/doc/gold.py": ["misses", "MOST"]}}) == 0
    assert "tests/doc/test_events.py:8: MOST is set by its name" in capsys.readouterr().out


def test_constants_come_before_the_code_of_a_module_and_functions_after_it(repository, run):
    assert run("split", split={"spacy_calib/doc/events.py": {"spacy_calib/metrics/loss.py": ["MOST", "Event"]}}, move={}) == 0
    assert (repository / "spacy_calib/metrics/loss.py").read_text() == (
        '"""Losses."""\n\n# At most so many.\nMOST = 3\n\n\ndef loss():\n    return 1\n\n\nclass Event:\n    most = MOST\n'
    )


def test_a_module_all_of_whose_names_move_is_gone(repository, run):
    assert run("split", split={"spacy_calib/doc/words.py": {"spacy_calib/doc/scores.py": ["WORDS"]}}, move={}) == 0
    assert not (repository / "spacy_calib/doc/words.py").exists()
    assert "WORDS = 2" in (repository / "spacy_calib/doc/scores.py").read_text()


@pytest.fixture
def moved(repository, run) -> Path:
    """The repository after both steps."""
    assert run("split") == 0
    commit("split")
    cache = repository / "spacy_calib/doc/__pycache__"
    cache.mkdir()
    (cache / "events.pyc").write_bytes(b"")
    assert run("move") == 0
    commit("move")
    return repository


def test_imports_follow_modules(moved):
    questions = (moved / "spacy_calib/plugins/events/questions.py").read_text()
    # `loss` of the package is a function, though a module had its name; the module has another one now.
    assert "from ...metrics import bins, loss\nfrom ...metrics.losses import loss as own_loss\n" in questions
    scores = (moved / "spacy_calib/plugins/events/scores.py").read_text()
    assert "from .questions import Event\nfrom ...gold.hits import hits\n" in scores
    assert "PAGE = 'spacy_calib/plugins/events/questions.py'" in scores
    assert (moved / "spacy_calib/metrics/__init__.py").read_text().startswith("from .losses import loss\nfrom . import bins\n")
    assert (moved / "spacy_calib/words.py").exists()


def test_tests_mirror_the_package(moved):
    test = (moved / "tests/plugins/events/test_questions.py").read_text()
    assert test.startswith(
        "from spacy_calib.plugins.events.questions import Event\nfrom spacy_calib.gold.hits import hits as hit\n"
        "from spacy_calib.metrics import bins, loss\n"
    )
    # The name in the test stays what it was.
    assert "    from spacy_calib.plugins.events import questions as events\n" in test


def test_texts_entry_points_and_strings_follow(moved):
    page = (moved / "docs/page.md").read_text()
    places = "`plugins/events/questions.py` and `doc/events.pyx`, `plugins.events.questions.Event.most` and `doc.eventful`"
    assert f"See {places}." in page
    assert "::: spacy_calib.gold.hits.hits\n::: spacy_calib.metrics.loss\n" in page
    assert "from spacy_calib.plugins.events.questions import Event\nfrom spacy_calib.gold.hits import hits\n" in page
    later = '".plugins.events.questions:Event", "score": ".plugins.events.scores"'
    assert later in (moved / "spacy_calib/__init__.py").read_text()
    assert (moved / "CHANGELOG.md").read_text() == "spacy_calib.doc.events\n"
    setup = (moved / "setup.cfg").read_text()
    assert "A = spacy_calib.plugins.events.questions:Event\n    B = spacy_calib.gold.hits:hits\n" in setup
    assert "spacy_calib = py.typed\nspacy_calib.plugins.events = *.css\n\n" in setup


def test_git_follows_and_no_folder_is_left_that_python_would_import(moved):
    renames = move.git("diff", "--name-status", "--find-renames", "HEAD~1", "HEAD")
    assert any(line.startswith("R") and line.endswith("spacy_calib/plugins/events/questions.py") for line in renames)
    assert not (moved / "spacy_calib/doc").exists()


def test_figures_measure_the_new_places_and_are_restamped_where_they_were_of_the_code(moved):
    def read():
        return {entry["name"]: entry for entry in json.loads((moved / "docs/figures.json").read_text())}

    before = read()
    assert before["all"]["measures"] == ["plugins/events", "gold/hits.py", "words.py", "metrics"]
    assert before["file"]["measures"] == ["plugins/events/questions.py", "gold/hits.py"]
    assert before["file"]["command"] == "python tests/plugins/events/test_questions.py"
    assert move.restamp("before") == ["all", "file"]
    after = read()
    assert after["old"] == before["old"]
    for name in ("all", "file"):
        assert after[name] == {**before[name], "code": digest_of(before[name]["measures"], moved)}
    assert move.restamp("before") == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"move": {"spacy_calib/doc/none.py": "spacy_calib/none.py"}}, "move: spacy_calib/doc/none.py is not in the last commit."),
        ({"drop": ["spacy_calib/none.py"]}, "move: spacy_calib/none.py is not in the last commit."),
        ({"move": {"spacy_calib/doc/words.py": "spacy_calib/metrics/bins.py"}}, "move: spacy_calib/metrics/bins.py exists already."),
        (
            {"move": {"spacy_calib/doc/words.py": "spacy_calib/a.py", "spacy_calib/doc/scores.py": "spacy_calib/a.py"}},
            "move: 2 files go to spacy_calib/a.py.",
        ),
        ({"about": {}}, "split: spacy_calib/doc/gold.py is new: 'about' needs its docstring."),
        ({"split": {"spacy_calib/none.py": {}}}, "split: spacy_calib/none.py is not in the last commit."),
        (
            {"split": {"spacy_calib/doc/events.py": {"spacy_calib/doc/gold.py": ["bins"]}}},
            "split: spacy_calib/doc/events.py defines no bins at its top.",
        ),
        (
            {"split": {"spacy_calib/doc/events.py": {"spacy_calib/gold/hits.py": ["hits"]}}, "about": {"spacy_calib/gold/hits.py": ""}},
            "split: spacy_calib/gold/hits.py is a new place: name the old one, 'move' brings it there.",
        ),
    ],
)  # fmt: skip
def test_a_plan_that_does_not_fit_the_commit_changes_nothing(repository, run, capsys, change, sentence):
    (repository / "spacy_calib/none.py").write_text("")  # in the folder, and not in the commit
    assert run("split", **change) == 1
    assert sentence in capsys.readouterr().out.splitlines()
    assert move.git("status", "--porcelain", "--untracked-files=no") == []


def test_doubts_about_a_plan_are_told(repository, run, capsys):
    changed = {**PLAN["move"], "spacy_calib/doc/__init__.py": "spacy_calib/plugins/events/__init__.py"}
    assert run("check", move=changed, drop=[], rooms={}) == 0
    printed = capsys.readouterr().out
    assert "rooms: spacy_calib.gold has no __init__.py." in printed
    assert "move: spacy_calib.doc goes to 3 places: what names the package will name spacy_calib.plugins.events." in printed


def test_a_checkout_with_changes_is_refused(repository, run, capsys):
    (repository / "setup.cfg").write_text("")
    assert run("move") == 1
    assert "The checkout has changes: commit them first." in capsys.readouterr().out
