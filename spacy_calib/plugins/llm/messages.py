"""Messages of answers of language models, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C641": "An answer is read from a response with choices that have logprobs, from one such choice, or from lists of tokens and logprobs, but {given} was given; hand over what the server or library gave, whole.",
    "C642": "The answer {given!r} comes without log-probabilities (`logprobs` is null), so that nothing says how sure the model is; ask for them (logprobs=True, top_logprobs=5; of Gemini response_logprobs, of llama.cpp n_probs), or ask a model that gives them.",
    "C643": "Each token of an answer needs one log-probability, a number up to 0, but {given} was given; hand over lists of equal length.",
    "C647": "The answer {given!r} comes with numbers in place of its tokens; ask for texts (SGLang: return_text_in_logprobs=True; vLLM: return_tokens_as_token_ids=False).",
    "C648": "A path into JSON names keys, with [] for each element of a list and * for any key (people[].name), but {given} was given; mend the setting `read`.",
    "C644": "What component '{name}' asks failed on the text that begins {text!r}: {why}; mend the function, and run the command again: answers in the cache stay.",
    "C645": "What reads the answers of component '{name}' gave {given}, but fields, pairs of a text and a type, or a mapping of names to probabilities are wanted; mend the function.",
    "C646": "The cache of answers at {path} cannot be used ({why}); name another file (cache), or delete this one.",
}
WARNINGS = {
    "CW86": "[CW86] The answer of component '{name}' on the text that begins {text!r} is {outcome}{why}; only its whole fields are taken, and it is counted (`outcomes`), as others from now on; look at the limit of tokens, the prompt and the setting `read`.",
}
calib_error = error_builder(MESSAGES)
