"""One change between two packs: where, what, and whether it widens or narrows what the pack permits."""

from typing import Literal

from contextplane.model.value import Value

__all__ = ["Change", "Effect"]


Effect = Literal["metadata", "narrows", "wording", "reads_more", "locale", "endpoint", "removes", "changes", "widens"]
"""What a change does. `metadata`: nothing at run time. `narrows`: less is possible than before. `wording`: the model
reads another text, and nothing that is enforced changes. `reads_more`: one more read-only source. `locale`, `endpoint`:
another default, another address. `removes`: a capability is gone. `widens`: more is possible. `changes`: something
else, or it cannot be told."""


class Change(Value, frozen=True):
    """`at` is the place by ids: `/policy_layer/guardrails/redaction_rules`. `words` is what a reviewer reads."""

    layer: str
    at: str
    effect: Effect
    words: str
