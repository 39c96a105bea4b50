"""What of a pack is searched, for those who index it and for those who tell what was left out."""

__all__ = ["LEFT_OUT", "SEARCHED"]

SEARCHED = 1 << 20
"""How much of one content: its first mebibyte."""

LEFT_OUT = "texts/left_out"
"""The mark that is set when there is content that goes on behind it, is not text, or could not be read."""
