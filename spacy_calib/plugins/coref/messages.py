"""Messages of coreference, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C355": "Antecedents of mentions do not fit together: {why}.",
    "C356": "There is nothing to learn coreference from: give examples whose gold has clusters of mentions (doc.spans['coref_clusters_1'] and so on).",
    "C357": "The component '{name}' has learned nothing yet: initialize the pipeline with examples that have clusters of mentions.",
    "C358": "The extension Doc._.coref belongs to somebody else; remove it before the component '{name}' is made.",
    "C359": "Among the mentions of doc.spans[{key!r}] one stands twice ({text!r}); give each mention once, clusters apart.",
    "C360": "The Doc has {given} mentions, there is none with the number {number}.",
    "C361": "The pairs of '{name}' cannot be calibrated: {why}; give it a recalibrator, and two documents at least with clusters of mentions.",
    "C415": "Clusters that follow calibrated pairs can be drawn of {wanted} mentions at most, this Doc has {given}; draw them as the model gives them (calibrated=False).",
}
calib_error = error_builder(MESSAGES)
