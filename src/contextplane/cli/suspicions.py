"""What looking for secrets showed, told to people: where something looks like one, and how much was not looked at."""

from collections.abc import Sequence

from contextplane.cli.screen import Screen, clean, counted

__all__ = ["tell_suspicions"]


def tell_suspicions(screen: Screen, suspects: Sequence[tuple[str, str]], unsearched: Sequence[str]) -> None:
    """Silence hides no suspicion: what was stored may have to be removed."""
    for at, kind in suspects:
        screen.warn(f"{clean(at)} looks like it holds a secret ({kind}); it was stored as it is")
    if unsearched:
        some = (
            f"{clean(unsearched[0])} and {counted(len(unsearched) - 1, 'other')}"
            if unsearched[1:]
            else clean(unsearched[0])
        )
        screen.note(f"only the first 256 KiB of {some} were searched for secrets")
