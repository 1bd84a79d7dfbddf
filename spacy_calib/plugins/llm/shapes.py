"""Read responses of servers and libraries: tokens with their log-probabilities, and how the answer ended."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, zip_longest
from reprlib import repr
from typing import Any, NamedTuple

from ...errors import brief
from .messages import calib_error

# How an incomplete answer ended -> the finish reasons of servers and libraries that mean this.
CUT, FILTERED, REFUSED, CALLED = "cut", "filtered", "refused", "called"
_REASONS = {
    CUT: "cut length max_tokens max_output_tokens model_length limit abort",
    FILTERED: "filtered content_filter content_filtered safety image_safety recitation blocklist prohibited_content spii",
    REFUSED: "refused refusal",
    CALLED: "called tool_calls tool_call function_call tool_use malformed_function_call",
}
_OUTCOMES = {reason: outcome for outcome, reasons in _REASONS.items() for reason in reasons.split()}
_REASON = ("finish_reason", "finishReason", "done_reason", "stop_type", "stop_reason", "outcome", "reason")
# Fields, of a choice or nested in one another, that may contain the list of tokens or the finish reason.
_NESTED = ("message", "response_metadata", "generation_info", "details", "meta_info", "logprobs", "logprobs_result",
           "logprobsResult", "incomplete_details")  # fmt: skip
# Field with a list of objects, one per token -> field with the list of top tokens; "" if these are in the objects.
_LISTS = {"output_token_logprobs": "output_top_logprobs", "chosen_candidates": "top_candidates",
          "chosenCandidates": "topCandidates", "tokens": "top_tokens", "content": "",
          "logprobs": "", "completion_probabilities": ""}  # fmt: skip
_TOKEN = ("bytes", "token", "text", "content", "decoded_token")
_LOGPROB = ("logprob", "log_probability", "logProbability")
# Thoughts that models write before an answer, and special tokens after it.
_THOUGHTS = re.compile(
    r"\A.*(?:</(?:think|thinking|thought|reasoning)>|<\|channel\|>final<\|message\|>)|\A\s*<think(?:ing)?>.*\Z", re.S
)
_STOP = re.compile(
    rb"\s*(?:<(?:\||\xef\xbd\x9c)[^<>\s]{1,40}(?:\||\xef\xbd\x9c)>|</?s>|<eos>|<end_of_turn>|<pad>|\[/INST\])\s*"
)
Top = tuple[bytes, Any]


class Generation(NamedTuple):
    """An answer. items: (token, log-probability, top tokens) by step. outcome: "", "cut", "filtered", "refused" or "called"."""

    items: list[tuple[bytes, Any, list[Top]]]
    outcome: str = ""


def read_response(response: Any) -> Generation:
    """Read the first choice of a response. RAISES C641: unknown form. C642: text without log-probabilities. C643: lists of
    unequal length. C647: token numbers in place of texts."""
    body = _get_choice(response)
    objects = list(_with_nested(body))
    outcome = _get_outcome(body, objects)
    if outcome not in ("", CUT):  # the text of a refusal, for instance, is no answer
        return Generation([], outcome)
    text = _get_text(body)
    steps = next((steps for item in objects if (steps := _get_steps(item)) is not None), None)
    if steps is None and text:
        raise calib_error("C642", given=brief(text))
    if steps is None and text is None and not outcome:
        has_empty_list = any(get(item, "content") == [] for item in objects)
        if not has_empty_list:  # an empty list of tokens is an empty answer
            raise calib_error("C641", given=repr(response))
    items = [(_get_bytes(item), _get_logprob(item), _get_tops(tops)) for item, tops in steps or ()]
    # A token may have its log-probability only among the top tokens.
    items = [(token, dict(tops).get(token) if logprob is None else logprob, tops) for token, logprob, tops in items]
    if text and items and all(re.fullmatch(rb"(token_id:\d+)?", token) for token, *_ in items):
        raise calib_error("C647", given=brief(text))
    return Generation(_drop_special(_drop_thoughts(items, text)), outcome)


def _get_outcome(body: Any, objects: Iterable[Any]) -> str:
    """Return how the answer in a choice ended: "" if complete, else a key of _REASONS. objects: `body` and all nested in it."""
    if get(body, "refusal") or get(get(body, "message", "additional_kwargs"), "refusal"):
        return REFUSED
    reasons = (get(item, *_REASON) for item in objects)
    names = (reason if isinstance(reason, str) else get(reason, "type", "name") for reason in reasons)
    outcomes = (_OUTCOMES.get(name.lower()) for name in names if isinstance(name, str))
    return next((outcome for outcome in outcomes if outcome is not None), "")


def get(thing: Any, *names: str) -> Any:
    """Return the first value that is not None among these keys of a mapping (or attributes of an object); None if all are."""
    values = (thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None) for name in names)
    return next((value for value in values if value is not None), None)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _get_choice(response: Any) -> Any:
    """Return the part of a response that has text and log-probabilities of its first choice; join the chunks of a stream."""
    if isinstance(response, Sequence) and response and not isinstance(response, str) and not _is_token(response[0]):
        choices = [get(chunk, "choices") for chunk in response]
        if None in choices:  # a list of responses, as of vLLM
            return _get_choice(response[0])
        parts = [choice for chunk in choices for choice in chunk[:1]]  # the first of each chunk; a last chunk may have none
        return _join_parts([get(part, "delta") for part in parts], parts)
    if _is_list(get(response, "output")):  # the Responses API of OpenAI
        parts = [part for message in get(response, "output") for part in get(message, "content") or ()]
        return _join_parts(parts, [*parts, get(response, "incomplete_details")])
    block_reason = get(get(response, "prompt_feedback", "promptFeedback"), "block_reason", "blockReason")
    choices = get(response, "choices", "candidates", "outputs", "generations")
    if choices == [] or (choices is None and block_reason):
        return {"outcome": FILTERED}  # `_get_outcome` reads this key
    if choices is None:
        return response
    body = choices[0] if isinstance(choices, Sequence) and choices else None
    body = body[0] if isinstance(body, list) else body  # LangChain
    return get(body, "message") if get(get(body, "message"), "response_metadata") is not None else body


def _join_parts(parts: Sequence[Any], objects: Sequence[Any]) -> dict[str, Any]:
    """Return one choice made of `parts`, which have its text, and `objects`, which have log-probabilities and finish reason."""
    token_lists = [get(get(item, "logprobs"), "content") or get(item, "logprobs") for item in objects]
    tokens = [token for tokens in token_lists if _is_list(tokens) for token in tokens]
    text = "".join(get(part, "content", "text") or "" for part in parts)
    refusal = "".join(get(part, "refusal") or "" for part in parts)
    reason = next((reason for item in objects if (reason := get(item, *_REASON))), None)
    return {"text": text, "refusal": refusal, "content": tokens, "finish_reason": reason}


def _with_nested(choice: Any, depth: int = 2) -> Iterator[Any]:
    """Yield a choice and the objects nested in it, `depth` levels deep; any of them may contain the log-probabilities."""
    yield choice
    for name in _NESTED if depth else ():
        if get(choice, name) is not None:
            yield from _with_nested(get(choice, name), depth - 1)


def _get_text(body: Any) -> str | None:
    """Return the text that a choice (`body`) has in addition to its tokens, without thoughts; None if it has no text."""
    text: Any = get(body, "message", "text", "content", "response", "generated_text")
    # The field is the text, a list of its parts, or an object with one of these; a message without content has the text "".
    if not (isinstance(text, str) or _is_list(text)):
        text = get(text, "content", "parts") or ("" if get(body, "message") else None)
    if not _is_list(text):
        return text
    texts = [get(part, "text") for part in text if not get(part, "thought")]  # some parts have no text
    texts = [part for part in texts if isinstance(part, str)]
    return "".join(texts) if texts else None


def _is_token(item: Any) -> bool:
    """Return whether an item of a list describes a token: a triple of SGLang (log-probability, number, text), or an object."""
    is_triple = isinstance(item, (list, tuple)) and len(item) == 3 and isinstance(item[0], float)
    return is_triple or get(item, *_LOGPROB, "bytes", "token") is not None


def _get_steps(body: Any) -> list[tuple[Any, Any]] | None:
    """Return (object of a token, object with its top tokens or None) for each token; None if `body` has no list of tokens."""
    ids, steps = get(body, "token_ids"), get(body, "logprobs")
    if ids is not None and _is_list(steps):  # vLLM: for each step a mapping from token numbers to objects
        return [(step[number], step.values()) for number, step in zip(ids, steps, strict=False)]
    # Other servers: `body` or a field of it is a list of objects, with the top tokens in another list or in the objects.
    candidates = [(body, None), *((get(body, name), get(body, tops_name)) for name, tops_name in _LISTS.items())]
    for items, tops in candidates:
        if _is_list(items) and any(map(_is_token, items)):
            return [(item, get(item, "top_logprobs") if top is None else top) for item, top in zip_longest(items, tops or ())]
    tokens, logprobs = get(body, "tokens"), get(body, "token_logprobs", "logprobs")
    if not (isinstance(tokens, Sequence) and isinstance(logprobs, Sequence)):
        return None
    tops = get(body, "top_logprobs") or [None] * len(tokens)
    if not len(tokens) == len(logprobs) == len(tops):
        raise calib_error("C643", given=f"{len(tokens)} tokens, {len(logprobs)} numbers, {len(tops)} lists of others")
    return [({"token": token, "logprob": logprob}, top) for token, logprob, top in zip(tokens, logprobs, tops, strict=True)]


def _get_tops(tops: Any) -> list[Top]:
    """Return (token, log-probability) of the top tokens at one step, from a mapping, a list, or an object with candidates."""
    if isinstance(tops, Mapping) and "candidates" not in tops:
        return [(_get_bytes(token), logprob) for token, logprob in tops.items()]
    candidates = tops if _is_list(tops) else get(tops, "candidates")
    if candidates is None:  # None: no top tokens; other objects that are no list raise a TypeError below
        candidates = tops or ()
    pairs = [(_get_bytes(top), _get_logprob(top)) for top in candidates]
    # The most likely first, after those without a number, which `Answer` leaves out.
    return sorted(pairs, key=lambda pair: -(pair[1] if isinstance(pair[1], (int, float)) else math.inf))


def _get_logprob(item: Any) -> Any:
    """Return the log-probability in the `item` of a token: an object, or SGLang's (log-probability, number, text); or None."""
    return item[0] if isinstance(item, (list, tuple)) else get(item, *_LOGPROB)


def _get_bytes(token: Any) -> bytes:
    """Return a token (text, bytes, or an object or triple with one) as bytes. RAISES C641: it has none. C647: only a number."""
    if isinstance(token, (list, tuple)):  # of SGLang: (log-probability, number, text)
        value = token[2]
        if value is None:
            raise calib_error("C647", given=repr(token))
    else:
        value = token if isinstance(token, (str, bytes)) else get(token, *_TOKEN)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return bytes(list(value))
    except (TypeError, ValueError):
        raise calib_error("C641", given=repr(token)) from None


def _drop_thoughts(items: list[Any], text: str | None) -> list[Any]:
    """Drop tokens of thoughts from Generation.items. text: The answer; "" if all tokens are thoughts, None if unknown."""
    whole, answer = b"".join(token for token, *_ in items), (text or "").encode("utf-8", "surrogatepass")
    if whole and whole != answer and answer.startswith(whole):  # llama.cpp has no token for the white space at the end: add it
        items, whole = [*items, (answer[len(whole) :], None, [])], answer
    start, end = 0, len(whole)  # the bytes of the answer among those of all tokens
    if text == "":
        start = end
    elif answer and answer in whole:
        start = whole.rfind(answer)  # the last place: thoughts may quote the answer
        end = start + len(answer)
    if thoughts := _THOUGHTS.match(whole[start:end].decode("utf-8", "surrogateescape")):
        start += len(thoughts[0].encode("utf-8", "surrogateescape"))
    if (start, end) == (0, len(whole)):
        return items
    token_ends = accumulate(len(token) for token, *_ in items)  # in bytes; tokens with a byte of the answer stay
    return [item for item, last in zip(items, token_ends, strict=True) if last > start and last - len(item[0]) < end]


def _drop_special(items: list[Any]) -> list[Any]:
    """Cut Generation.items before the special tokens at their end, which may have white space between and after them."""
    n_visible = len(items)  # without the special tokens and white space at the end
    while n_visible and (_STOP.fullmatch(items[n_visible - 1][0]) or not items[n_visible - 1][0].strip()):
        n_visible -= 1
    special_tokens = (i for i in range(n_visible, len(items)) if _STOP.fullmatch(items[i][0]))
    return items[: next(special_tokens, len(items))]
