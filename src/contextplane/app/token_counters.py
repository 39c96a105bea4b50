"""Chooses the token counter of a compile: the one asked for, else the pack's, else the default."""

from typing import TYPE_CHECKING, assert_never

from contextplane.model.tokens import APPROX4, CALIBRATED1, TokenCounterName, Tokens

if TYPE_CHECKING:
    from contextplane.model.context_pack import ContextPack

__all__ = ["choose_counter", "load_counter"]


def choose_counter(pack: "ContextPack", name: TokenCounterName | None = None) -> Tokens:
    """Load the counter of this name, else the one that the pack names, else the default."""
    return load_counter(name or pack.pack_meta.token_counter or CALIBRATED1.name)


def load_counter(name: TokenCounterName) -> Tokens:
    """Load a counter by its name, or raise if it cannot be loaded here."""
    match name:
        case "calibrated1":
            return CALIBRATED1
        case "approx4":
            return APPROX4
        case "o200k_base" | "cl100k_base":
            from contextplane.adapters.exact_tokens import load_exact_tokens
            from contextplane.app.settings import token_tables

            return load_exact_tokens(name, token_tables())
        case unreachable:
            assert_never(unreachable)
