"""Train the conditional random field of Table 1 of Kranzlein et al. (2021) over an encoder, and write its probabilities of tags.

    python ../../scripts/papers streusle_crf tok2vec.cfg training/tok2vec-crf.npz      # in configs/streusle_lsr, after `convert`

CONFIG is a training config of spaCy: the encoder is its first component, and the block `training` has the optimizer, the batches and the steps.
Dev chooses the step. OUTPUT holds of train (a part as large as dev), dev and test the probability of each tag of each token and the tag of the best
labelling: what streusle_table.py judges.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import bare, docs_in, make_parser, say
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.util import fix_random_seed, load_config, registry

from papers.chains.neural import NeuralCrf, encoder_of
from spacy_calib.cli.shared.writing import write_file

SPLITS = ("train", "dev", "test")


def judged_docs(golds: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The gold Docs of each split that are judged: of train a part as large as dev."""
    n_words = sum(map(len, golds["train"]))
    step = max(1, n_words // sum(map(len, golds["dev"])))
    return {split: docs[:: step if split == "train" else 1] for split, docs in golds.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("output", type=Path, help="NPZ file")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder with train, dev and test.spacy")
    parser.add_argument("--transformer", help="name or folder, in place of the config's paths.transformer")
    parser.add_argument("--steps", type=int, help="in place of the config's training.max_steps")
    parser.add_argument("--rate", type=float, default=1.0, help="how many times as fast transitions are learned")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    overrides: dict[str, Any] = {"paths.train": "", "paths.dev": ""}
    overrides |= {"paths.transformer": given.transformer} if given.transformer else {}
    overrides |= {"training.max_steps": given.steps} if given.steps else {}
    config = load_config(given.config, overrides=overrides, interpolate=True)
    fix_random_seed(given.seed)
    vocab = spacy.blank("en").vocab
    golds = {split: docs_in(given.corpus / f"{split}.spacy", vocab) for split in SPLITS}
    labels = sorted({token.tag_ for doc in golds["train"] for token in doc})
    crf = NeuralCrf(encoder_of(config), labels, given.rate)
    train, dev = ([Example(bare(gold), gold) for gold in golds[split]] for split in ("train", "dev"))
    for step, accuracy in crf.fit(train, dev, registry.resolve(config["training"], schema=ConfigSchemaTraining)):
        say(f"step {step}: accuracy on dev {100 * accuracy:.1f} %")
    arrays: dict[str, Any] = {"labels": np.array(labels)}
    for split, docs in judged_docs(golds).items():
        chances, arrays[f"best_{split}"] = crf.read([bare(doc) for doc in docs])
        arrays[f"chances_{split}"] = chances.astype(np.float32)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    write_file(given.output, content.getvalue())
    return 0
