"""What is said about a document repeats no secret that stands in it, not even where a name should stand."""

import re

from contextplane.policy.randomness import holds_random_run
from contextplane.policy.secrets import HIDDEN, secret_shapes

__all__ = ["HIDDEN", "looks_secret", "without_secrets"]

_WORD = re.compile(r"[^\s'\"]+")
_STEP = re.compile(r"[^/]+")
_LONGEST = 1000
_LONG_STEP = re.compile(rf"[^/]{{{_LONGEST},}}")
"""No name is so long. To look for secrets in such a one takes long, and nobody reads it in a place."""


def looks_secret(text: str) -> bool:
    return bool(secret_shapes(text.encode(errors="replace"))) or holds_random_run(text)


def without_secrets(text: str, *, is_pointer: bool = False) -> str:
    """The same words, without those that look like secrets; of a JSON Pointer, without such steps and endless ones."""
    if is_pointer and len(text) > _LONGEST:
        text = _LONG_STEP.sub(lambda match: f"(a name of {len(match[0])} characters)", text)
    if not looks_secret(text):
        return text
    part = _STEP if is_pointer else _WORD
    hidden = part.sub(lambda match: HIDDEN if looks_secret(match[0]) else match[0], text)
    return HIDDEN if looks_secret(hidden) else hidden
