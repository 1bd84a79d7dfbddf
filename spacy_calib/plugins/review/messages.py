"""Messages of queues, ranks and audits, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C076": "No {unit} in the data has gold; give annotated data, or leave the comparison out.",
    "C531": "The pipe '{name}' has no cut-offs that tell which entities are accepted; find them with `spacy calib threshold --precision` and write them with --apply.",
    "C090": "The pipe '{name}' knows no tag '{tag}'; it knows: {available}.",
    "C091": "None of the {n} {unit}s in the pool can be chosen: {excluded} are labelled already, and none of the others has a {what}; give more texts.",
    "C092": "Cannot read the texts in {path}: {why}; give a .csv file with a column text, as `spacy calib select` writes it.",
    "C093": "No tags of the pipe '{name}' held together {share} of the gold tokens at the fit or less; name tags with --tag.",
    "C094": "Every {unit} that could be chosen has more words than the {max_words} of --max-words; give a larger budget.",
    "C399": "The ranking of so many texts needs a temporary file, which cannot be written: {why}; set TMPDIR to a folder with room, or give --repeats.",
    "C468": "The scores of so many texts need a temporary file, which cannot be written: {why}; set TMPDIR to a folder with room.",
    "C625": "Gold is audited by maps that did not see its document, which needs two documents or more, but the data are one document; give more, or name the key that tells its documents apart (--doc-key).",
}
calib_error = error_builder(MESSAGES)
