"""The four answers of `ctx verify`: how each ends the command, and its colour."""

from contextplane.cli.exit import NOT_FOUND, OK, REFUSED, UNTRUSTED

__all__ = ["ANSWER_COLOR", "STATUS_OF"]

STATUS_OF = {"verified": OK, "modified": UNTRUSTED, "unchecked": REFUSED, "unknown": NOT_FOUND}
ANSWER_COLOR = {"verified": "green", "modified": "red", "unchecked": "yellow", "unknown": "yellow"}
