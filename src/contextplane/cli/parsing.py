"""What arguments say to shells about themselves."""

from argparse import Action

__all__ = ["complete_folders"]


def complete_folders(action: Action) -> None:
    """Let completion offer folders for this argument. shtab reads this attribute, and need not be imported for it."""
    action.complete = {"bash": "_shtab_compgen_dirs", "zsh": "_files -/", "fish": "__fish_complete_directories"}  # type: ignore[attr-defined]
