"""Whether there is enough data: to choose among methods, to trust a fit, to promise sets. Knows arrays, never Docs."""

from __future__ import annotations

# Fewer than this, and a choice among methods is made of chance: see scripts/study_auto_small.py.
DOCUMENTS_TO_CHOOSE = 10
TOKENS_TO_CHOOSE = 500
PAIRS_TO_CHOOSE = 600


def too_few_to_choose(n_documents: int, n_tokens: int, n_pairs: int) -> str:
    """Why methods cannot be compared by cross-validation on so much data; "" where they can.

    Below any of the three least numbers nothing is compared, and the smallest safe map is taken: one temperature for all tags.

    n_documents (int): Documents with pairs. n_tokens (int): Tokens with gold. n_pairs (int): Pairs that reach the threshold.
    """
    wanted = (
        ("documents", n_documents, DOCUMENTS_TO_CHOOSE),
        ("tokens", n_tokens, TOKENS_TO_CHOOSE),
        ("pairs", n_pairs, PAIRS_TO_CHOOSE),
    )
    return next((f"{given:,} {what}, and {least:,} are wanted" for what, given, least in wanted if given < least), "")
