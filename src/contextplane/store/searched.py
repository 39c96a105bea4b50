"""What of a pack is searched, for those who index it and for those who tell what was left out."""

from contextplane.model.ids import Digest

__all__ = ["LEFT_OUT", "SEARCHED", "UNREAD", "unread"]

SEARCHED = 1 << 20
"""How much of one content: its first mebibyte."""

LEFT_OUT = "texts/left_out"
"""The mark that is set when there is content that goes on behind it, or is not text."""

UNREAD = "texts/unread/"
"""The prefix of the marks of contents that could not be read when their pack was indexed: `<pack>/<content>`, in hex.

Once such a content can be read again, the index is behind.
"""


def unread(pack: Digest) -> str:
    """The prefix of those of one pack."""
    return f"{UNREAD}{pack.hex}/"
