"""Messages of pages, pictures and comparisons, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C095": "The Doc that begins {text!r} has no scores with the prefix '{attr}'; run it through a fitted calib pipe, and keep what that wrote (DocBin: store_user_data=True).",
    "C096": "The scores with the prefix '{attr}' are of {unit}s ({layer}), not of entities; render them with style='tokens'.",
    "C615": "Component '{component}' of {model} sets {layer}, and that of {other} (--against) {given}: there is nothing to compare; give a pipeline whose component labels the same.",
    "C616": "Component '{component}' of {model} and that of {other} (--against) share no label ({known}; {given}): their tag sets differ; compare pipelines that were trained on one scheme, or fit one with --map.",
    "C617": "No token of the gold has a scored label of component '{component}' by both {model} and {other} (--against): there is nothing to compare; --gold-preproc gives both the tokens of the gold.",
    "C618": "An {called} counts as right by the event '{event}' in {model}, and by '{given}' in {other} (--against): fit both with one --event.",
    "C610": "Slices are searched on one half of the documents and confirmed on the other (--find-slices), but there are {n} documents with gold and scores; give at least {wanted}.",
    "C730": "This page answers at {wanted} alone, and was asked for by {given}; open that address.",
    "C731": "There is nothing here for {method} {given}; open the address that `calib view` printed.",
    "C732": "The text is too long ({n}): at most {most} characters are shown at once; show a part of it, or score all of it with `nlp.pipe`.",
    "C733": "There is no text; type or paste one.",
    "C734": "The pipeline fails on this text ({why}); try another one, or mend the component.",
    "C735": "What was sent is no text in UTF-8 of the length that it names; send one.",
    "C736": "The port {port} of 127.0.0.1 cannot be opened: {why}; give another one (--port), or none for a free one.",
    "C098": "The pipe '{name}' judges no tag '{tag}'; it judges: {available}.",
}
calib_error = error_builder(MESSAGES)
