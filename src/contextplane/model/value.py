"""The two base classes of every value: frozen always, and closed on the wire."""

import msgspec

__all__ = ["Document", "Value"]


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A value between two functions: immutable, compared by content, built by keyword."""


class Document(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value on the wire. Closed: an unknown field is a refusal, not a warning."""
