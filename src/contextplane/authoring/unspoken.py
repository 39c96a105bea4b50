"""What is said about a document repeats no secret that stands in it, not even where a name should stand."""

import re

from contextplane.policy.randomness import holds_random_run
from contextplane.policy.secrets import secret_shapes

__all__ = ["HIDDEN", "looks_secret", "without_secrets"]

HIDDEN = "(not shown: it looks like a secret)"

_WORD = re.compile(r"[^\s'\"]+")
_STEP = re.compile(r"[^/]+")


def looks_secret(text: str) -> bool:
    return bool(secret_shapes(text.encode(errors="replace"))) or holds_random_run(text)


def without_secrets(text: str, *, is_pointer: bool = False) -> str:
    """The same words, without those that look like secrets; of a JSON Pointer, without such steps."""
    if not looks_secret(text):
        return text
    part = _STEP if is_pointer else _WORD
    hidden = part.sub(lambda match: HIDDEN if looks_secret(match[0]) else match[0], text)
    return HIDDEN if looks_secret(hidden) else hidden
