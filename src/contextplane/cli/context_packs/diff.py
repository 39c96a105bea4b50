"""`ctx diff OLD.yaml NEW.yaml`: two context packs, by layer, with the least version class of the change."""

from contextplane.app.comparing import packs_compared
from contextplane.authoring.comparison import Comparison
from contextplane.cli.context_packs.changes import answer, tell
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.screen import Screen, clean, counted

__all__ = ["diff"]


def diff(old: str, new: str, screen: Screen, *, exit_code: bool) -> int:
    found = packs_compared(old, new)
    _tell(found, (old, new), screen)
    screen.answer({"file_a": old, "file_b": new, **answer(found)})
    return DRIFT if exit_code and not found.same else OK


def _tell(found: Comparison, files: tuple[str, str], screen: Screen) -> None:
    if found.same:
        screen.say(f"No differences found. Both are {found.new}, in the same canonical form.")
        return
    screen.say(f"Comparing {found.old} ({clean(files[0])}) vs {found.new} ({clean(files[1])})")
    screen.say()
    if not found.bump.reasons:
        screen.say("Only the order of parts differs.")
    tell(found, screen)
    screen.say()
    screen.say(f"{counted(len(found.bump.reasons), 'change')}. Least version class: {found.bump.least}")
    if found.refusal:
        screen.say(f"{screen.paint('red', 'refused')}: {clean(found.refusal)}")
