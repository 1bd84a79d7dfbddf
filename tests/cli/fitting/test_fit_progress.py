"""The bar of `calib fit` moves from the first document read to the last map fitted."""

import functools
import os
import re
import struct
from contextlib import contextmanager

import pytest
import spacy
from spacy.cli._util import app

from spacy_calib.pairs.progress import Progress
from tests.cli.conftest import NO_CONTEXT, calib, ok, save_gold, scaling
from tests.forked import fork

fcntl, pty, termios = (
    pytest.importorskip(name, reason="the system has no terminals like this") for name in ("fcntl", "pty", "termios")
)


@pytest.fixture(scope="module")
def enough(tmp_path_factory):
    """400 sentences: enough to choose a method."""
    return save_gold(tmp_path_factory.mktemp("enough") / "dev.spacy", 400, 12)


@pytest.fixture(scope="module")
def fit_reporting(model, enough, tmp_path_factory):
    """A function of options, called once for each, that gives the fitted pipeline and what `calib fit` reports: (share of the fit that is done, stage)."""

    @functools.cache
    def fit(*options):
        calls, output = [], tmp_path_factory.mktemp("reported") / "out"

        @contextmanager
        def share_bar(silent):
            yield Progress(lambda share, stage: calls.append((share, stage)))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spacy_calib.cli.fit_command.share_bar", share_bar)
            ok(calib("fit", model, enough, output, *options))
        return output, calls

    return fit


@pytest.mark.parametrize(("options", "moving"), [
    ((), {"Fitting the scaling": 10, "Learning the context": 10, "Comparing methods": 2}),
    ((NO_CONTEXT,), {"Fitting the scaling": 10, "Comparing methods": 2}),
    ((scaling("Matrix"), "-m", "isotonic"), {"Fitting the scaling": 5}),
    (("-m", "isotonic"), {}),
])  # fmt: skip
def test_the_share_grows_through_all_stages_to_the_end(fit_reporting, options, moving):
    _, calls = fit_reporting(*options)
    shares = [share for share, _ in calls]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert shares.count(1.0) == 1, "nothing is done after the end"
    assert list(dict.fromkeys(stage for _, stage in calls)) == ["Reading scores", *moving, "Fitting the maps"]
    for stage, fewest in {"Reading scores": 400, **moving}.items():
        assert len({share for share, name in calls if name == stage}) >= fewest


def test_reports_change_no_score(model, enough, fit_reporting, tmp_path):
    ok(calib("fit", model, enough, tmp_path / "silent", "--silent"))
    silent, reported = (spacy.load(path) for path in (tmp_path / "silent", fit_reporting()[0]))
    for text in ("the old dog saw a red duck .", "a duck saw the old light"):
        a, b = ([token._.calib_scores for token in nlp(text)] for nlp in (silent, reported))
        assert a == b


def on_a_terminal(*arguments) -> tuple[int, str]:
    """Exit status and output of `calib fit` in a child of this process on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))

    def type_in() -> None:
        for descriptor in range(3):
            os.dup2(theirs, descriptor)
        app(["calib", "fit", *map(str, arguments)])

    child = fork(type_in)
    os.close(theirs)
    printed = b""
    try:
        while read := os.read(ours, 65536):
            printed += read
    except OSError:  # the other end was closed
        pass
    os.close(ours)
    code, *_ = child.end()
    return code, printed.decode("utf8")


def test_on_a_terminal_one_bar_covers_the_fit(model, enough, tmp_path):
    code, printed = on_a_terminal(model, enough, tmp_path / "out", NO_CONTEXT)
    assert code == 0, printed
    bars = re.findall(r"([A-Z][a-z ]+): +(\d+)%\|", printed)
    shares = [int(share) for _, share in bars]
    assert shares == sorted(shares)
    assert {"Reading scores", "Comparing methods", "Fitting the maps"} <= {stage for stage, _ in bars}
    assert bars[-1] == ("Fitting the maps", "100")
    assert shares.index(100) >= len(shares) - 2, "the bar does not stand at 100 %"
    assert "doc/s" not in printed
    last = printed.rindex("100%|")
    assert printed.index("Calibrated tagger on") > last


def test_on_a_terminal_there_is_no_bar_with_silent(model, enough, tmp_path):
    code, printed = on_a_terminal(model, enough, tmp_path / "out", "-m", "isotonic", "--silent")
    assert (code, printed) == (0, "")
