"""Messages of pretrained calibrations, each with a code."""

from ...errors import error_builder
from ...errors.advice import ANY, PRETRAINED, PYTHON, SECOND_PASS

# What to do without gold, see `errors.advice`.
ADVICE = {
    "C027": {
        (ANY, ANY): "without gold run `python -m spacy calib pretrained MODEL OUTPUT`, if there is a card (--list)",
        (PYTHON, ANY): "without gold call `spacy_calib.pretrained(model)`, if there is a card",
    },
    "C085": {(ANY, ANY): "for calibrated entities without gold call `spacy_calib.pretrained(nlp)`"},
    SECOND_PASS: {
        (ANY, PRETRAINED): "run `python -m spacy calib pretrained` on its folder",
        (PYTHON, PRETRAINED): "save the pipeline, and calibrate it from its folder: `spacy_calib.pretrained(folder)`",
    },
}
MESSAGES = {
    "C839": "Component '{component}' of this loaded pipeline cannot be calibrated where it stands ({why}); save the pipeline, and calibrate it from its folder: `spacy_calib.pretrained(folder)`.",
    "C830": "Name a pipeline and a folder for the result (`calib pretrained MODEL OUTPUT`), or give --list.",
    "C831": "The pretrained calibration '{card}' cannot be read from {path} ({why}); correct the file, or install the package that it comes from again.",
    "C832": "The entry point '{name}' of the group spacy_calib_pretrained ({value}) gives no folder of cards ({why}); mend or uninstall the package that registers it.",
    "C833": "There is no pretrained calibration '{given}'; there are: {known}.",
    "C834": "There is no pretrained calibration for {component} of language '{language}'; there are some for {known}, each with the labels of that pipeline. With gold of your own: `python -m spacy calib fit MODEL DATA OUTPUT`.",
    "C835": "The pretrained calibration '{card}' is for {wanted}, not for {component} of language '{language}'; leave it out, or fit: `python -m spacy calib fit MODEL DATA OUTPUT`.",
    "C836": "The scores of component '{component}' are not like those that '{card}' was fitted on: {n} predictions in its sentences with mean log-odds {mean}, and {wanted_n} with {wanted} (spread {spread}) are expected; fit on gold: `python -m spacy calib fit MODEL DATA OUTPUT`.",
    "C837": "The pipe '{name}' is there already, and comes from {origin}; remove it first (`python -m spacy calib stock MODEL OUTPUT`), or name only other components (--component).",
}
WARNINGS = {
    "CW76": "[CW76] Component '{component}' has no calibrated scores: {why}. With gold: `python -m spacy calib fit MODEL DATA OUTPUT --component {component}`.",
    "CW75": "[CW75] The pretrained calibration '{card}' was fitted on the scores of other weights than those of component '{component}': its scores are transferred, and may be less well calibrated than the card reports; adapt them with a few labelled documents.",
}
calib_error = error_builder(MESSAGES)
