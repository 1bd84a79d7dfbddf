"""Messages of coreference, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C355": "The antecedents of mentions are not consistent: {why}.",
    "C356": "The examples have no clusters of mentions to learn coreference from; give gold with clusters (doc.spans['coref_clusters_1'] and so on).",
    "C357": "The component '{name}' is not trained; initialize the pipeline with examples that have clusters of mentions.",
    "C358": "The extension Doc._.coref was registered by another package; remove it before the component '{name}' is created.",
    "C359": "The mentions of doc.spans[{key!r}] contain one twice ({text!r}); give each mention once, in one cluster.",
    "C360": "The Doc has {given} mentions, but no mention {number}; count from 0.",
    "C361": "The pairs of '{name}' cannot be calibrated: {why}; give it a recalibrator, and at least two documents with clusters of mentions.",
    "C415": "Clusters that follow calibrated pairs can be sampled for at most {wanted} mentions, but this Doc has {given}; sample those of the model (calibrated=False).",
}
calib_error = error_builder(MESSAGES)
