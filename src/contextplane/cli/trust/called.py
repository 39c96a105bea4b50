"""How a key is told to people: the beginning of its id, and what it is called."""

from collections.abc import Mapping

from contextplane.cli.screen import clean

__all__ = ["called"]

_SHOWN = 16


def called(key_id: str, names: Mapping[str, str]) -> str:
    """The id decides; the name is what whoever trusted the key wrote down, or what it is called here."""
    name = names.get(key_id)
    return f"{key_id[:_SHOWN]} {clean(name)}" if name else key_id[:_SHOWN]
