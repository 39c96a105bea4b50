"""Runs of characters as random as only keys are. A name of several words is none, however long; nor is a digest.

What tells them apart is how often letters and digits take turns: names put digits at the end of a word, lots do not.
"""

import re

__all__ = ["SHORTEST", "holds_random_run"]

SHORTEST = 20
"""No run that is shorter is looked at."""

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])(?:sha256:)?[A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_=-])")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PIECE = re.compile(r"[A-Za-z0-9]{14,}")
_TURN = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_TURNS = 4
_CHARACTERS_PER_TURN = 8


def holds_random_run(text: str) -> bool:
    """Whether a text holds a run that looks drawn by lot."""
    return any(_is_random(match[0]) for match in _RUN.finditer(text))


def _is_random(run: str) -> bool:
    if run.startswith("sha256:") or _UUID.fullmatch(run):
        return False
    # Between the separators of a name stand words; between those that a lot draws, at least one long piece.
    turns = len(_TURN.findall(run)) if _PIECE.search(run) else 0
    return turns >= max(_TURNS, len(run) // _CHARACTERS_PER_TURN)
