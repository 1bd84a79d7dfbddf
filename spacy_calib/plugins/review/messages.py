"""Messages of queues, ranks and audits, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C076": "No {unit} in the data has gold; give annotated data, or leave the comparison out.",
    "C531": "The pipe '{name}' has no cut-offs for accepting entities; find and save them with `spacy calib threshold --precision .9 --apply OUTPUT`.",
    "C625": "An audit needs at least two documents, since it checks each by maps fitted on the others, but the data are one document; give more, or name the key that separates its documents (--doc-key).",
}
calib_error = error_builder(MESSAGES)
