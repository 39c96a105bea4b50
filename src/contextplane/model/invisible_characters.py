"""Characters that show nothing: one definition for the linter, prompts, pages and the terminal.

Each constant is the inside of a character class of a regular expression: callers join those that they need between
brackets. The ranges are written down and not taken from `unicodedata`, whose tables differ between versions of Python:
the same text must be treated alike everywhere.

| caller | what it does with them | takes |
|---|---|---|
| `policy.detect.invisible_text` | reports them in a pack | all, but joiners and emoji style where a script needs them |
| `compiler.quotation` | escapes them in a prompt | all but `JOINERS` and `EMOJI_STYLE` |
| `compiler.evidence` | evidence of nothing else is empty | all, and blanks |
| `handoff.markdown` | escapes them in a page | all but `JOINERS` and `EMOJI_STYLE` |
| `cli.output` | escapes them in JSON that may reach a terminal | all but `EMOJI_STYLE` |
"""

__all__ = ["CONTROLS", "EMOJI_STYLE", "FORMATTING", "JOINERS", "LINE_SEPARATORS"]

CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
"""The control characters, C0 and C1, except tab, line feed and carriage return."""

LINE_SEPARATORS = "\u2028\u2029"
"""Line and paragraph separator: a break to some readers, nothing to others."""

JOINERS = "\u200c\u200d"
"""Zero width joiner and non-joiner. Arabic, the scripts of India and some emoji are not written right without them."""

EMOJI_STYLE = "\ufe0f"
"""Variation selector 16, which turns a sign into an emoji."""

FORMATTING = (
    "\u00ad\u034f\u061c\u180e"  # soft hyphen, grapheme joiner, Arabic letter mark, Mongolian vowel separator
    "\u115f\u1160\u3164\uffa0"  # Hangul fillers
    "\u17b4\u17b5"  # Khmer inherent vowels
    "\u200b\u200e\u200f\u202a-\u202e"  # zero width space, and marks that change the direction of writing
    "\u2060-\u206f\ufeff\ufff0-\ufffb"  # word joiner, isolates, byte order mark, annotations
    "\u180b-\u180d\u180f\ufe00-\ufe0e\U000e0100-\U000e01ef"  # variation selectors other than `EMOJI_STYLE`
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # format controls of shorthand and of musical notation
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # tags, and the rest of their block
)
"""All other characters without a visible form."""
