"""Which modules of ours a new Python imports that loads a pipeline and reads a score, and which of them run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import spacy_calib
from tests.forked import alone

_CODE = """
import json, sys
import spacy
doc = spacy.load(sys.argv[1])("Ann lives in Paris .")
[token._.calib_score for token in doc]
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "spacy_calib"]))
"""


_TRACED = """
import json, sys
import spacy
nlp, package, modules = spacy.load(sys.argv[1]), sys.argv[2], {}
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        modules.setdefault(frame.f_code.co_filename[len(package) :])
sys.setprofile(note)
doc = nlp("Ann lives in Paris .")
[token._.calib_score for token in doc]
sys.setprofile(None)
print(json.dumps(list(modules)))
"""


def _run(code: str, *arguments: object) -> Any:
    """What a new Python prints as JSON."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, env=alone())
    return json.loads(done.stdout.splitlines()[-1])


def loaded_modules(pipeline: Path) -> list[str]:
    """The modules of this package."""
    return list(_run(_CODE, pipeline))


def traced_files(pipeline: Path) -> list[str]:
    """The files of the package whose functions the first Doc calls, in the order of their first call."""
    return list(_run(_TRACED, pipeline, f"{Path(spacy_calib.__file__).parent}/"))
