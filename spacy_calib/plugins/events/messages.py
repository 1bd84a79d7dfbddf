"""Messages of events of whole units, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C372": "Features must be finite numbers in an array of shape (rows, features), but {given} was given.",
    "C373": "Cannot fit a {what} on no rows; give it data with gold.",
    "C374": "This {what} learned from {wanted} features, but {given} were given; give the same ones.",
    "C380": "A function of the registry calib_events must make an event, but {given} was given; make a spacy_calib.plugins.events.questions.Event, or an OwnEvent.",
    "C382": "None of the {several} has both scores and gold, so that nothing can be learned of them; give gold with sentences and labels, and enable what finds the {several}.",
    "C383": "Option --unit {unit} is about {about}, but '{component}' gives {what}; leave it out.",
    "C384": "Option --unit {unit} needs {unit}s, but nothing in the pipeline finds any; add a parser, a senter or a sentencizer.",
    "C385": "The event pipe '{owner}' writes Span._.{attr}_right already; give this one the prefix of another calib pipe (attr), or remove the other.",
    "C410": "Trees of the Doc that begins {text!r} cannot be drawn: no parser was read over this very Doc in this process (a copy is another Doc); run the pipeline over it, or give the parser to spacy_calib.plugins.events.trees.sample_trees.",
    "C411": "Sentence starts that were drawn cannot be written on a Doc with a parse; take them from `codes`, or draw before a parser has run.",
    "C414": "A draw is written on a Doc with the same words, but the one that begins {text!r} has others; give a copy of the Doc that was drawn for.",
    "C680": "Trees of a Doc cannot be drawn, as '{name}' would not decide as it did: {why}; draw in the process that ran the pipeline, before the Doc's words or vectors change, and of two parsers with the one whose arcs were scored (sample_trees).",
    "C681": "Trees are drawn from a parser without a beam, and '{name}' ({kind}) is none; give the component that the calib pipe reads.",
}
WARNINGS = {
    "CW23": "[CW23] The pipe '{name}' gives no forecasts of some Docs: {why}.",
}
calib_error = error_builder(MESSAGES)
