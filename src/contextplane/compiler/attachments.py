"""Attachments of a request: evidence of which only a reference and a digest are known. Their content is not opened."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from contextplane.compiler.draft import Admitted, Draft
from contextplane.compiler.quoting import quoted_json
from contextplane.model.compiled_context import Omission

if TYPE_CHECKING:
    from contextplane.model.invoke import Attachment

__all__ = ["Attached", "attachments"]

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


class Attached(NamedTuple):
    """An attachment that may be shown, and what is shown of it."""

    admitted: Admitted
    content: str


def attachments(draft: Draft) -> Iterator[Attached | Omission]:
    """Every attachment, in the given order: it is shown, or omitted with its reason.

    What is shown never holds the address: that may be signed, and whoever has it can read what it leads to.
    """
    given = draft.inputs.request.attachments
    first: dict[str, Attachment] = {}
    seen: set[str] = set()
    clashing = {one.artifact_id for one in given if first.setdefault(one.artifact_id, one) != one}
    for n, one in enumerate(given):
        ref, at, digest = f"attachment:{one.artifact_id}", f"request#/attachments/{n}", _DIGEST.fullmatch(one.sha256)
        reason = None
        if digest is None:
            reason = "not_a_digest"
        elif one.artifact_id in clashing:
            reason = "same_reference_twice"
        elif one.artifact_id in seen:
            reason = "duplicate"
        if digest is None or reason is not None:
            yield Omission(kind="evidence", id=ref, stage="evidence", reason=reason or "", at=at)
            continue
        seen.add(one.artifact_id)
        named = f"sha256:{digest[1]}"
        yield Attached(
            admitted=Admitted(evidence_ref=ref, source=None, at=at, closes=None, hash=named),
            content=quoted_json({"artifact_id": one.artifact_id, "media_type": one.media_type, "sha256": named}),
        )
