"""Shapes that only secrets have. A detector says that something looks like one; it never repeats it."""

import re

__all__ = ["SEARCHED", "secret_shapes"]

SEARCHED = 32 << 10
"""How much of one content is looked at: its first 32 KiB."""

_SHAPES = {
    "private key": re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
    "AWS access key": re.compile(rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "GitHub token": re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    "Slack token": re.compile(rb"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "API key": re.compile(rb"\bsk-[A-Za-z0-9_-]{20,}"),
    "JSON Web Token": re.compile(rb"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
}
_HINTS = (b"-----BEGIN", b"AKIA", b"ASIA", b"gh", b"xox", b"sk-", b"eyJ")


def secret_shapes(data: bytes) -> tuple[str, ...]:
    """The kinds of secrets that the beginning of some bytes looks to contain, by name."""
    head = data[:SEARCHED]
    if not any(hint in head for hint in _HINTS):
        return ()
    return tuple(kind for kind, shape in _SHAPES.items() if shape.search(head))
