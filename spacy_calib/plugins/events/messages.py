"""Messages of events of whole units, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C372": "Features must be finite numbers in an array of shape (rows, features), but {given} was given.",
    "C373": "Cannot fit the {what}: there are no rows; give it data with gold.",
    "C374": "This {what} was fitted on {wanted} features, but {given} were given; give the same ones.",
    "C380": "A function of the registry calib_events must return an event, but returned {given}; return a spacy_calib.plugins.events.questions.Event, or an OwnEvent.",
    "C382": "None of the {several} has both scores and gold, so there is nothing to learn; give gold with sentences and labels, and enable the component that finds the {several}.",
    "C383": "Option --unit {unit} is for {about}, but '{component}' predicts {what}; leave it out.",
    "C384": "Option --unit {unit} needs {unit}s, but no component of the pipeline finds any; add a parser, a senter or a sentencizer.",
    "C385": "The event pipe '{owner}' already writes Span._.{attr}_right; give this one the prefix of another calib pipe (attr), or remove the other.",
    "C410": "Trees of the Doc that begins {text!r} cannot be sampled: no parser was run over this very Doc in this process (a copy is another Doc); run the pipeline over it, or pass the parser to spacy_calib.plugins.events.trees.sample_trees.",
    "C411": "Sampled sentence starts cannot be written on a Doc with a parse; take them from `codes`, or sample before a parser has run.",
    "C414": "A sample can be written only on a Doc with the same words, but the one that begins {text!r} has others; pass a copy of the Doc that was sampled.",
    "C680": "Trees of a Doc cannot be sampled, as '{name}' would not decide as it did: {why}; sample in the process that ran the pipeline, before the words or vectors of the Doc change, and with two parsers from the one whose arcs were scored (sample_trees).",
    "C681": "Trees can be sampled only from a parser without a beam, but '{name}' is a {kind}; name the component that the calib pipe reads.",
}
WARNINGS = {
    "CW23": "[CW23] The pipe '{name}' gives no forecasts of some Docs: {why}.",
}
calib_error = error_builder(MESSAGES)
