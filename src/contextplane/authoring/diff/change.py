"""A change between two packs: its place, its words, and its effect on what the pack permits."""

from typing import Literal

from contextplane.model.value import Value

__all__ = ["Change", "Effect"]


Effect = Literal["metadata", "narrows", "wording", "reads_more", "locale", "endpoint", "removes", "changes", "widens"]
"""The effect of a change. `metadata`: none at run time. `narrows`: less is possible than before. `wording`: the model
reads another text, and nothing that is enforced changes. `reads_more`: one more read-only source. `locale`, `endpoint`:
another default, another address. `removes`: a capability is gone. `widens`: more is possible. `changes`: something
else, or the effect is unknown."""


class Change(Value, frozen=True):
    """One change. `at` is its place, with ids for positions; `words` describe it for a reviewer."""

    layer: str
    at: str
    effect: Effect
    words: str
