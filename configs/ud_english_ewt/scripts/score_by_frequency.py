"""Score every calibrated pipeline by the same five tag frequency groups.

python scripts/score_by_frequency.py CALIBRATED TEST.spacy OUTPUT.json

`spacy calib evaluate` judges a pipe by the groups that it was fitted with, and SCW has a single one. Here all pipes are judged by tag
frequency groups, made from the tag frequencies that each pipe keeps.
"""

from pathlib import Path

import srsly
import typer
from tqdm import tqdm

from spacy_calib.cli._common import fitted_pipes, load_pipeline, read_examples, run_pipes
from spacy_calib.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.report.tables import calibration_table
from spacy_calib.scorers import judge


def main(calibrated: Path, test: Path, output: Path, groups: int = 5, bins: int = 10, seed: int = 0) -> None:
    """Write the calibration table of each pipeline in the folder CALIBRATED."""
    tables = {}
    for path in tqdm(sorted(path for path in calibrated.iterdir() if path.is_dir()), desc="Pipelines", unit="pipeline"):
        nlp = load_pipeline(str(path))
        (pipe,) = fitted_pipes(nlp)
        examples = read_examples(nlp, test, gold_preproc=False)
        judged = judge(run_pipes(nlp, examples, nlp.pipe_names, silent=True, what=path.name), pipe.attr, pipe.fitted_labels)
        counts = dict(zip(pipe.fitted_labels, pipe.maps.groups.counts.tolist(), strict=True))
        by_frequency = tag_frequency_groups(pipe.fitted_labels, counts, groups)
        tables[path.name] = calibration_table(judged.pairs, judged.calibrated, by_frequency, bins, seed)
    srsly.write_json(output, tables)


if __name__ == "__main__":
    typer.run(main)
