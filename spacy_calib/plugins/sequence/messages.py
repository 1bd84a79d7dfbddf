"""Messages of sequence models, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C321": "A chain needs a score for each of the {wanted} labels of its potentials (at least one), but has scores of {given}; pass scores of these labels.",
    "C322": "The scores of a chain contain NaN or infinity; check the weights of the model.",
    "C323": "Sequence {number} has no allowed labelling; loosen the constraints, or correct the scores that are -inf.",
    "C325": "The component '{name}' has {labels} labels, but weights for {given}; initialize it again.",
    "C326": "The component '{name}' needs at least two labels of '{target}' to learn from, but has: {given}; give examples with more.",
    "C327": "The component '{name}' is not trained; initialize the pipeline with examples.",
    "C335": "The component '{name}' cannot be loaded from {path} ({why}); copy its folder again, or train it again.",
    "C336": "The component '{name}' was saved in format version {given}, but this spacy-calib reads version {wanted}; train it again.",
    "C337": "The constraints of component '{name}' name {unknown}, which is none of its labels ({known}); remove it from the constraints, or add it to the labels.",
    "C338": "The gold labels of the document that begins {text!r} break the constraints of component '{name}' ('{label}' {place}); correct the gold, or loosen the constraints.",
    "C339": "The gold label '{label}' of the document that begins {text!r} is none of the labels of component '{name}' ({known}); add it to the labels (`spacy init labels` writes them), or remove it from the gold.",
    "C329": 'CRFsuite is not installed; run `pip install "spacy-calib[crfsuite]"`.',
    "C328": "Cannot read the feature template {given!r}; give a name (chunking, spelling), or a list of texts such as 'ORTH[-1] ORTH[0]' (attributes of tokens, with their distance).",
    "C342": "The component '{name}' ({kind}) computes no probabilities of label pairs; use a calib_crf, a calib_hmm or a calib_crfsuite.",
    "C416": "Entities are sampled by their own scores, not by the chain of '{name}'; use Doc._.{attr}.sample.",
}
calib_error = error_builder(MESSAGES)
