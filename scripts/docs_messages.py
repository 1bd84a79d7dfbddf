"""The index of errors and warnings in docs/questions.md, from the messages modules of the core and of the plug-ins.

A heading (a comment) in errors/messages.py names the subject of the errors below it; the errors of a plug-in are one subject. Every subject
has a page here and every warning has a line: a new one without them is an error.
"""

from __future__ import annotations

import importlib
import re
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "spacy_calib"
# Subject -> title and path of the page to read, from docs/.
PAGES = {
    "Arrays and settings": ("Python and config", "reference/python.md#config"),
    "Context": ("Python and config", "reference/python.md#config"),
    "Saved state": ("In production", "guides/production.md"),
    "Labels and components": ("Attributes", "reference/attributes.md#what-works-with-what"),
    "Gold data": ("Gold", "guides/gold.md"),
    "Names and arrays": ("Arrays", "components/other-tools.md#arrays"),
    "Gold files": ("Gold", "guides/gold.md"),
    "Label schemes": ("Commands", "reference/commands.md#label-maps"),
    "Command line": ("Commands", "reference/commands.md"),
    "Packages that are missing": ("Home", "index.md"),
    "Scores of other components": ("Other tools", "components/other-tools.md"),
    "Adaptation": ("New kinds of text", "guides/new-texts.md"),
    "Metrics": ("How it works", "how-it-works.md#metrics"),
    "Texts and score files": ("In production", "guides/production.md"),
    "Slices and comparisons": ("Where scores are wrong", "guides/new-texts.md#where-scores-are-wrong"),
    "Answers of annotation tools": ("Gold", "guides/gold.md"),
    "Uses of scores": ("Review queues", "guides/review.md"),
    "arrays": ("Arrays", "components/other-tools.md#arrays"),
    "llm": ("Language models", "components/language-models.md"),
    "pretrained": ("Scores without gold", "start/scores-without-gold.md"),
    "report": ("Commands", "reference/commands.md"),
    "review": ("Review queues", "guides/review.md"),
    "spark": ("In production", "guides/production.md"),
}
# The subject of a plug-in in words.
TITLES = {
    "arrays": "`TagCalibrator`",
    "llm": "Answers of language models",
    "pretrained": "`pretrained`",
    "report": "Pages and pictures",
    "review": "`rank`, `audit`",
    "spark": "Spark",
}
# Errors that users meet most: what to do.
COMMON = {
    "C012": "The pipeline was saved with a plug-in or package that is missing here: install it.",
    "C027": "The pipeline is not calibrated: run `calib fit` with gold, or `calib pretrained` without.",
    "C030": "The data has no gold of this kind: give annotated data, or choose another component with `-C`.",
    "C050": "The pipeline cannot be loaded: check name and path; install its package; give `--code` for components of your own.",
    "C054": "The output exists: choose another path, or add `--force`.",
    "C077": "Several calibrated components are possible: choose one with `--component`.",
    "C081": "The file has texts, but this command needs gold: give `.spacy`, `.conllu` or the export of an annotation tool.",
    "C130": "The fit would make scores worse: give more gold, let `--method auto` choose, or write it with `--always`.",
    "C164": "Many gold labels are unknown to the component: map its labels with `--map`, or accept misses with `--allow-unknown`.",
    "C482": "The gold contains training data of the model: give held-out gold.",
    "C530": "No cut-off reaches the precision: ask for a lower one, or give more gold.",
}
WARNINGS = {
    "CW01": "The pipe is not fitted and returns raw scores: fit it, or use `calib pretrained`.",
    "CW02": "No scores: enable the component that the pipe reads, and keep `calib` directly after it.",
    "CW03": "Labels were added after the fit: fit again.",
    "CW04": "The component was retrained or replaced: fit again.",
    "CW05": "Entities were on the Doc before the recognizer ran: give texts, or Docs without entities.",
    "CW13": "Only one document was labelled: label more, and adapt again.",
    "CW14": "The labelled texts are texts of the fit: label new ones, and adapt again.",
    "CW19": "Labels are missing in the source: add them to its `labels`.",
    "CW21": "Gold labels without a column count as wrong: add the columns.",
    "CW24": "Scores were computed at half precision: run on the same kind of device, or fit at full precision.",
    "CW40": "A plug-in cannot be loaded and is left out: fix or uninstall its package.",
    "CW55": "Tokens have two accepted labels: reject one of them, and export again.",
    "CW56": "Entries that are not labels are skipped: check the file.",
    "CW60": "The words of the `.conllu` file differ from its `# text`: correct the file.",
    "CW61": "Some records cannot be used: correct them, or go on without them.",
    "CW62": "Contractions were split: give the `.conllu` file itself, or convert it with `spacy convert --merge-subtokens`.",
    "CW63": "The tool does not say how it counts characters: check the first spans.",
    "CW65": "The gold may be output of the pipeline: check how it was made.",
    "CW75": "The card belongs to other weights: adapt with a few labelled documents.",
    "CW76": "The output of other components differs from that of the card's pipeline: adapt with a few labelled documents.",
    "CW77": "This component has no card: fit it on gold, or leave it out with `-C`.",
    "CW86": "An answer was cut off or cannot be read: check the token limit, the prompt and `read`.",
    "CW87": "A list of names is missing from this version: install the version that saved the pipeline, or run `calib pretrained` again.",
}


def index() -> str:
    """The three tables: common errors, all errors by subject, warnings. RAISES KeyError: a subject or a warning has no line, or a line no code."""
    subjects, warnings = read_messages()
    for table, codes in ((COMMON, subjects), (WARNINGS, warnings)):
        if stale := set(table) - set(codes):
            raise KeyError(f"No message has the codes {sorted(stale)}; correct scripts/docs_messages.py.")
    lines = ["The most common errors:", "", "| code | what to do |", "| --- | --- |"]
    lines += [f"| {code} | {text} |" for code, text in COMMON.items()]
    lines += ["", "All errors by subject:", "", "| subject | codes | read |", "| --- | --- | --- |"]
    for subject, ranges in code_ranges(subjects).items():
        title, path = PAGES[subject]
        lines.append(f"| {TITLES.get(subject, subject)} | {', '.join(ranges)} | [{title}]({path}) |")
    lines += ["", "Warnings do not stop a command:", "", "| code | what to do |", "| --- | --- |"]
    lines += [f"| {code} | {WARNINGS[code]} |" for code in sorted(warnings)]
    return "\n".join(lines)


def read_messages() -> tuple[dict[str, str], dict[str, str]]:
    """Code -> subject of all errors, and of all warnings."""
    errors: dict[str, str] = {}
    warnings: dict[str, str] = {}
    subject = ""
    source = (PACKAGE / "errors" / "messages.py").read_text(encoding="utf8")
    for heading, code in re.findall(r'^    (?:# (.+)|"(CW?\d+)":)', source, flags=re.M):
        subject = heading or subject
        if code:
            (warnings if code.startswith("CW") else errors)[code] = subject
    for path in sorted(PACKAGE.glob("plugins/*/messages.py")):
        module = importlib.import_module(f"spacy_calib.plugins.{path.parent.name}.messages")
        errors |= dict.fromkeys(module.MESSAGES, path.parent.name)
        warnings |= dict.fromkeys(getattr(module, "WARNINGS", {}), path.parent.name)
    return errors, warnings


def code_ranges(subjects: dict[str, str]) -> dict[str, list[str]]:
    """Subject -> its codes. Codes that follow one another with no code of another subject between them are one range."""
    ranges: dict[str, list[str]] = {subject: [] for subject in subjects.values()}
    for subject, group in groupby(sorted(subjects), key=subjects.__getitem__):
        first, *others = group
        ranges[subject].append(f"{first}-{others[-1]}" if others else first)
    return ranges
