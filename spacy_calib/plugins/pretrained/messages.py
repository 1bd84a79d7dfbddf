"""Messages of pretrained calibrations, each with a code."""

from ...errors import error_builder

MESSAGES = {
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
    "CW75": "[CW75] The pretrained calibration '{card}' was fitted on the scores of other weights than those of component '{component}': its scores are transferred, and may be less well calibrated than the card reports; adapt them with a few labelled documents.",
}
calib_error = error_builder(MESSAGES)
