"""What goes with a release says the same as setup.cfg and the code: entry of the spaCy Universe, workflows."""

import configparser
import re
from pathlib import Path

import pytest
import srsly

import spacy_calib
from spacy_calib.about import __url__ as HOME

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf8")
# Of https://spacy.io/universe: what an entry may have, and the categories that there are.
FIELDS = {
    "id", "title", "slogan", "description", "github", "pip", "code_example", "code_language", "url", "image", "thumb", "author",
    "author_links", "category", "tags",
}  # fmt: skip
CATEGORIES = {
    "pipeline", "training", "conversational", "visualizers", "research", "scientific", "biomedical", "apis", "nonpython", "standalone", "models",
    "extensions",
}  # fmt: skip


def lines(section: str, name: str) -> list[str]:
    return [line for line in SETUP[section][name].split("\n") if line]


def test_the_entry_of_the_universe_has_its_form():
    """Its example is run by tests/docs/test_pages.py."""
    entry = srsly.read_json(ROOT / "docs" / "universe.json")
    assert entry.keys() <= FIELDS
    assert set(entry["category"]) <= CATEGORIES
    assert (entry["id"], entry["pip"]) == (SETUP["metadata"]["name"],) * 2
    assert len(entry["slogan"]) < 100


def test_the_citation_has_the_licences_and_the_version_of_the_package():
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert " AND ".join(citation["license"]) == SETUP["metadata"]["license"]
    assert citation["version"] == spacy_calib.__version__
    assert citation["preferred-citation"]["authors"][0]["family-names"] == "Kranzlein"


def test_only_about_has_the_address():
    name = "/".join(HOME.split("/")[-2:])
    here = {file for suffix in ("md", "py", "cfg", "toml", "yml", "yaml", "json", "cff") for file in ROOT.glob(f"*.{suffix}")}
    for folder in (".ci", ".github", "configs", "docs", "scripts", "spacy_calib", "tests"):
        here |= {file for file in (ROOT / folder).rglob("*.*") if file.suffix in (".md", ".py", ".yml", ".yaml", ".json")}
    repeats = {file.relative_to(ROOT).as_posix() for file in here if name in file.read_text(encoding="utf8")}
    assert repeats == {"spacy_calib/about.py"}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_names_targets_of_make_that_there_are_and_may_write_only_where_it_must(file):
    """Its form is checked by `make lint`, by the schema of GitHub."""
    text = file.read_text(encoding="utf8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf8"), flags=re.M))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
    workflow = srsly.yaml_loads(text)
    assert workflow["permissions"] == {"contents": "read"}
    writers = [name for name, job in workflow["jobs"].items() if "write" in job.get("permissions", {}).get("contents", "")]
    assert writers == (["site"] if file.name == "docs.yml" else [])
    assert [action for action in re.findall(r"uses: (\S+)", text) if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_the_workflows_try_each_python_that_the_package_promises():
    promised = {
        name.rpartition(" ")[2] for name in lines("metadata", "classifiers") if re.fullmatch(r".* :: Python :: 3\.\d+", name)
    }
    tests = srsly.yaml_loads((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf8"))
    assert set(tests["jobs"]["systems"]["strategy"]["matrix"]["python"]) == promised
    versions = re.search(r"^VERSIONS \?= (.+)$", (ROOT / "Makefile").read_text(encoding="utf8"), flags=re.M)
    assert set(versions[1].split()) == promised


def test_a_release_is_published_by_a_job_of_its_own_that_alone_may_sign():
    """Trusted publishing: no password, and what runs the code of the repository has no right to upload."""
    jobs = srsly.yaml_loads((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf8"))["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert not any("run" in step for step in jobs["publish"]["steps"])
    upload = jobs["publish"]["steps"][-1]
    assert upload["with"] == {"attestations": True}
