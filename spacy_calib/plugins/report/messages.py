"""Messages of pages and pictures, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C095": "The Doc that begins {text!r} has no scores with the prefix '{attr}'; run it through a fitted calib pipe, and save its user data (DocBin: store_user_data=True).",
    "C096": "The scores with the prefix '{attr}' are of {unit}s ({layer}), not of entities; render them with style='tokens'.",
    "C730": "This page is served at {wanted} only, but {given} was requested; open that address.",
    "C731": "There is no page for {method} {given}; open the address that `calib view` printed.",
    "C732": "The text is too long ({n}): at most {most} characters can be shown at once; show a part of it, or score all of it with `nlp.pipe`.",
    "C733": "There is no text; type or paste one.",
    "C734": "The pipeline fails on this text ({why}); try another one, or fix the component.",
    "C735": "The request has no text in UTF-8 of the length in its header; send one.",
    "C736": "The port {port} of 127.0.0.1 cannot be opened: {why}; give another one (--port), or none for a free one.",
    "C098": "The pipe '{name}' has no tag '{tag}' to evaluate; it evaluates: {available}.",
}
calib_error = error_builder(MESSAGES)
