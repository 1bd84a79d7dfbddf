"""Messages of sequence models, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C321": "A chain needs scores of the labels that its potentials are of, at least one: there are {wanted} labels in the potentials, {given} in the scores.",
    "C322": "The scores of a chain hold NaN or infinity; look at the weights of the model.",
    "C323": "Sequence {number} has no labelling that is allowed: loosen the constraints, or mend the scores that are -inf.",
    "C325": "The component '{name}' has {labels} labels, its weights are of {given}; initialize it again.",
    "C326": "The component '{name}' needs at least two labels of '{target}' to learn from; given: {given}.",
    "C327": "The component '{name}' has learned nothing yet: initialize the pipeline with examples.",
    "C335": "The component '{name}' cannot be loaded from {path} ({why}); copy its folder anew, or train it again.",
    "C336": "The component '{name}' was saved in format version {given}, but this spacy-calib reads version {wanted}; train it again.",
    "C337": "The constraints of component '{name}' name {unknown}, which is none of its labels ({known}); take it out of the constraints, or add it to the labels.",
    "C338": "The gold labels of the document that begins {text!r} break the constraints of component '{name}' ('{label}' {place}); mend the gold, or loosen the constraints.",
    "C339": "The gold label '{label}' of the document that begins {text!r} is none of the labels of component '{name}' ({known}); add it to its labels (`spacy init labels` writes them), or take it out of the gold.",
    "C329": 'CRFsuite is not installed; run `pip install "spacy-calib[crfsuite]"`.',
    "C328": "Cannot read the feature template {given!r}; it is a name (chunking, spelling), or a list of texts such as 'ORTH[-1] ORTH[0]': attributes of tokens and how far off they stand.",
    "C342": "The component '{name}' ({kind}) gives pairs of labels no probability; a calib_crf, a calib_hmm or a calib_crfsuite does.",
    "C416": "Entities are drawn by their own scores, not by the chain of '{name}': use Doc._.{attr}.sample.",
}
calib_error = error_builder(MESSAGES)
