"""Messages of counts, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C390": "The probabilities of the counted units must be numbers from 0 to 1, one for each unit, but others were given; correct them.",
    "C391": "The samples of a count are {given}, but at least one whole number of 0 or more is expected (shape (n,) or (n, n_parts)); pass the count in each sample.",
    "C392": 'The query {given} cannot be read: {why}. Give a label (PERSON), a token pattern ([{{"TAG": "NNP"}}]) or an event ({{"verb": "attack", "names": ["Iraq"]}}).',
    "C393": "No calib pipe of the pipeline knows the label '{given}' of the query {query}; they know: {known}.",
    "C389": "The label of the query {query} is known to {n} calib pipes; choose one of them: {options}.",
    "C483": "The pipe '{name}' does not distinguish {labels}: the label '{given}' of the query {query} is counted together with the others as {merged}; query that.",
    "C394": "The query {query} needs scores of {key}, which no calib pipe of the pipeline has; there are scores of {known}.",
    "C395": "The query {query} needs {what}; add {add} to the pipeline.",
    "C396": "The query {query} reads {key}, which the labelled documents in {path} do not have; give documents with it, or leave --gold out.",
    "C397": "Text {line} of {path} has no usable value under the key '{key}': {why}; name another key (--by), or leave it out.",
    "C398": "{what} cannot be counted by {given}; give --unit {wanted}.",
}
calib_error = error_builder(MESSAGES)
