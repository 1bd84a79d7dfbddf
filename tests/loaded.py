"""Which modules of ours a new Python imports that loads a pipeline and reads a score."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.forked import alone

_CODE = """
import json, sys
import spacy
doc = spacy.load(sys.argv[1])("Ann lives in Paris .")
[token._.calib_score for token in doc]
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "spacy_calib"}))
"""


def loaded_modules(pipeline: Path) -> dict[str, int]:
    """Module -> lines of its file."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(pipeline)], capture_output=True, text=True, timeout=600, check=True, env=alone()
    )
    files = json.loads(done.stdout.splitlines()[-1])
    return {name: len(Path(file).read_text(encoding="utf8").splitlines()) for name, file in files.items()}
