"""Messages of counts, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C390": "The chances of units to be counted must be numbers from 0 to 1, one for each; those given are not.",
    "C391": "Draws of a count must be whole numbers of 0 or more, one at least; those given are not.",
    "C392": 'The query {given} cannot be read: {why}. Give a label (PERSON), a token pattern ([{{"TAG": "NNP"}}]) or an event ({{"verb": "attack", "names": ["Iraq"]}}).',
    "C393": "No calib pipe of the pipeline knows the label '{given}' of the query {query}; they know: {known}.",
    "C389": "The label of the query {query} is one of {n} calib pipes; choose one of them: {options}.",
    "C483": "The pipe '{name}' does not tell {labels} apart: the label '{given}' of the query {query} is counted with the others, by the name {merged}; query that.",
    "C394": "The query {query} asks for {key}, which no calib pipe of the pipeline scores; there are scores of {known}.",
    "C395": "The query {query} needs {what}; add {add} to the pipeline.",
    "C396": "The query {query} looks at {key}, which the labelled documents in {path} do not have; give documents with it, or leave --gold out.",
    "C397": "Text {line} of {path} has nothing under the key '{key}' that texts can be counted by: {why}; name another key (--by), or leave it out.",
    "C398": "{what} is not counted by {given}; give --unit {wanted}.",
}
calib_error = error_builder(MESSAGES)
