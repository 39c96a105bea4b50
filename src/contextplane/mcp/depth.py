"""Messages that are nested so deep that no decoder takes them: whoever sent one still waits for an answer to its id."""

import re

from contextplane.model.json.errors import MAX_DEPTH

__all__ = ["cut"]

# A text, also one that does not end, or a bracket. Possessive, hence linear.
_PART = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_DEEPEST = MAX_DEPTH + 2  # the message itself, its params, and still one more than is allowed


def cut(data: bytes) -> bytes:
    """The message without what is nested deeper than anybody reads. Its depth is still refused, as that of others."""
    kept, depth, start = [], 0, 0
    for part in _PART.finditer(data):
        bracket = part[0]
        if bracket in {b"[", b"{"}:
            depth += 1
            if depth == _DEEPEST + 1:
                kept.append(data[start : part.start()])
        elif bracket in {b"]", b"}"}:
            if depth == _DEEPEST + 1:
                kept.append(b"0")
                start = part.end()
            depth -= 1
    return b"".join(kept) if depth > _DEEPEST else b"".join([*kept, data[start:]])
