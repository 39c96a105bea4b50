"""The four answers of `ctx verify`: how each ends the command, its colour, and of a file the way out."""

from typing import TYPE_CHECKING

from contextplane.cli.exit import NOT_FOUND, OK, REFUSED, UNTRUSTED

if TYPE_CHECKING:
    from contextplane.app.verifying import ArtifactVerdict

__all__ = ["ANSWER_COLOR", "STATUS_OF", "way_out"]

STATUS_OF = {"verified": OK, "modified": UNTRUSTED, "unchecked": REFUSED, "unknown": NOT_FOUND}
ANSWER_COLOR = {"verified": "green", "modified": "red", "unchecked": "yellow", "unknown": "yellow"}

_SIDECARS = "'ctx pack LOG --sidecars'"
_SHORT = 12


def way_out(verdict: "ArtifactVerdict") -> str:
    """What to do about a file that is not verified; nothing of one that is."""
    if verdict.answer == "verified":
        return ""
    if verdict.answer == "unknown":
        if verdict.sidecar is None:
            return f"if a run put it out, {_SIDECARS} with the log of that run writes one"
        return "'ctx import' brings that run from an archive, 'ctx pack' from its log"
    if verdict.pack is None:
        unread = "" if verdict.sidecar is None else "; if the pack cannot be read, 'ctx fsck' tells why"
        return f"move the sidecar away, and {_SIDECARS} writes it anew{unread}"
    run = verdict.pack.digest.hex[:_SHORT]
    if verdict.expected is None:
        return f"'ctx show {run}' lists the outputs: the file must have the name and the place of the one that it is"
    own = f"'ctx cat {run}:outputs/{verdict.expected.name}' gives what the run put out"
    return f"{own}; if a later run put it out anew, {_SIDECARS} with that run's log replaces the sidecar"
