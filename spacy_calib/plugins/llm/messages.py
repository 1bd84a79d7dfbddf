"""Messages of answers of language models, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C641": "An answer is read from a response with choices that have logprobs, from one such choice, or from lists of tokens and logprobs, but {given} was given; pass the whole response of the server or library.",
    "C642": "The answer {given!r} has no log-probabilities (`logprobs` is null), which the confidence of the model is computed from; request them (logprobs=True, top_logprobs=5; of Gemini response_logprobs, of llama.cpp n_probs), or use a model that returns them.",
    "C643": "Each token of an answer needs one log-probability, a number of at most 0, but {given} was given; pass lists of equal length.",
    "C647": "The answer {given!r} has numbers in place of its tokens; request texts (SGLang: return_text_in_logprobs=True; vLLM: return_tokens_as_token_ids=False).",
    "C648": "A path into JSON names keys, with [] for each element of a list and * for any key (people[].name), but {given} was given; correct the setting `read`.",
    "C644": "The function that component '{name}' sends prompts to failed on the text that begins {text!r}: {why}; fix the function, and run the command again: answers in the cache stay.",
    "C646": "The cache of answers at {path} cannot be used ({why}); name another file (cache), or delete this one.",
}
WARNINGS = {
    "CW86": "[CW86] The answer of component '{name}' on the text that begins {text!r} is {outcome}{why}: only its complete fields are used. Further answers of this kind are counted without a warning (`nlp.get_pipe('{name}').outcomes`); check the limit of tokens, the prompt and the setting `read`."
}
calib_error = error_builder(MESSAGES)
