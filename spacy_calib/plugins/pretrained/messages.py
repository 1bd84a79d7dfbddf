"""Messages of pretrained calibrations, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C830": "No pipeline and output folder were given; give both (`calib pretrained MODEL OUTPUT`), or --list.",
    "C831": "The pretrained calibration '{card}' cannot be read from {path} ({why}); correct the file, or reinstall its package.",
    "C832": "The entry point '{name}' of the group spacy_calib_pretrained ({value}) returns no folder of cards ({why}); fix or uninstall the package that registers it.",
    "C833": "There is no pretrained calibration '{given}'; there are: {known}.",
    "C834": "There is no pretrained calibration for {component} of language '{language}'{why}; there are some for {known}, each with the labels of that pipeline. With your own gold: `python -m spacy calib fit MODEL DATA OUTPUT`; without gold, for entities: the card 'universal' (`python -m spacy calib pretrained MODEL OUTPUT --card universal`).",
    "C835": "The pretrained calibration '{card}' is for {wanted}, not for {component} of language '{language}'{why}; leave it out, or fit on gold: `python -m spacy calib fit MODEL DATA OUTPUT`.",
    "C836": "The scores of component '{component}'{why} differ from those that '{card}' was fitted on: {n} predictions in its sentences with mean log-odds {mean}, but {wanted_n} with {wanted} (spread {spread}) are expected; fit on gold: `python -m spacy calib fit MODEL DATA OUTPUT`.",
    "C837": "The pipe '{name}' exists already, and comes from {origin}; remove it first (`python -m spacy calib stock MODEL OUTPUT`), or name only other components (--component).",
    "C839": "No cut-off of the pretrained calibration '{card}' has a mean precision of {precision} on the left-out sources, with at most {slack} less on the worst one; the highest mean is {mean}, at {cutoff}; give a lower precision, or find a cut-off on your own gold (`python -m spacy calib threshold MODEL DATA`).",
    "C840": "A precision was given, but no pretrained calibration of the pipeline has cut-offs ({cards}): only those of entities in one language do; leave it out.",
    "C842": "The card 'universal' is for the entities of a trained spaCy recognizer (`ner`) with labels for persons, places or organizations, but {why}; name such a component (--component), or fit on gold: `python -m spacy calib fit MODEL DATA OUTPUT`.",
    "C843": "The card 'universal' does not suit component '{component}': in spaCy's example sentences of language '{language}' ({n_sentences} sentences) it finds {n} persons, places and organizations with mean log-odds {mean}, but at least {fewest} with mean log-odds of at least {lowest} are expected; fit on gold: `python -m spacy calib fit MODEL DATA OUTPUT`.",
}
WARNINGS = {
    "CW75": "[CW75] The pretrained calibration '{card}' was fitted with other weights of {others}, so its scores may be less well calibrated than the card reports; adapt them with a few labelled documents.",
    "CW76": "[CW76] On the sentences of the pretrained calibration '{card}' the output of {others} differs from that of the card's own pipeline, so entities of '{component}' are scored without it, by a smaller map; adapt them with a few labelled documents.",
    "CW87": "[CW87] The list of names '{name}' (checksum {checksum}), which this calibration was fitted with, is not in this version of spacy-calib, so entities are scored without lists, by a smaller map; install the version that the pipeline was saved with, or calibrate the stock pipeline again (`python -m spacy calib pretrained MODEL OUTPUT`).",
    "CW77": "[CW77] Component '{component}' gets no scores from a pretrained calibration: {why}; fit it on gold (`python -m spacy calib fit MODEL DATA OUTPUT`), or name other components.",
}
calib_error = error_builder(MESSAGES)
