"""Messages of counts, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C390": "The probabilities of the counted units must be numbers from 0 to 1, one for each unit, but others were given; correct them.",
    "C393": "No calib pipe of the pipeline knows the label '{given}' of the query {query}; they know: {known}.",
    "C389": "The label of the query {query} is known to {n} calib pipes; choose one of them: {options}.",
    "C483": "The pipe '{name}' does not distinguish {labels}: the label '{given}' of the query {query} is counted together with the others as {merged}; query that.",
    "C397": "Text {line} of {path} has no usable value under the key '{key}': {why}; name another key (--by), or leave it out.",
    "C398": "{what} cannot be counted by {given}; choose {wanted} (--unit).",
}
calib_error = error_builder(MESSAGES)
