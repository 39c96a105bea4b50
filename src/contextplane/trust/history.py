"""Whether a log is still the one that we knew: nothing rolled back, forked, rewritten or truncated. Each has its code.

Rules over values: what was seen before, what is shown now. Who keeps the highest checkpoint seen, and where, is not
decided here; it must be the client, and not the log.
"""

from collections.abc import Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.proofs import is_consistent

__all__ = ["LogForked", "LogRewritten", "LogRolledBack", "LogTruncated", "advanced"]

_HINT = "do not trust this log; compare it with a copy"


class LogRolledBack(ContextPlaneError):
    """A log shows a checkpoint of fewer entries than one that it showed before."""

    code: ClassVar[str] = "log_rolled_back"
    family: ClassVar[Family] = "untrusted"


class LogForked(ContextPlaneError):
    """A log signed two different trees of the same size: it shows different people different things."""

    code: ClassVar[str] = "log_forked"
    family: ClassVar[Family] = "untrusted"


class LogRewritten(ContextPlaneError):
    """A log does not begin with the entries that it had, or its entries are not those that it signed."""

    code: ClassVar[str] = "log_rewritten"
    family: ClassVar[Family] = "untrusted"


class LogTruncated(ContextPlaneError):
    """A log has fewer entries than it signed."""

    code: ClassVar[str] = "log_truncated"
    family: ClassVar[Family] = "untrusted"


def advanced(seen: Checkpoint | None, shown: Checkpoint, proof: Sequence[bytes]) -> Checkpoint:
    """The highest checkpoint after looking at one more; `proof` leads from `seen` to `shown`. The first is believed."""
    if seen is None:
        return shown
    if seen.origin != shown.origin:
        raise LogForked(f"a checkpoint of {shown.origin!r} instead of {seen.origin!r}", hint=_HINT)
    if shown.size < seen.size:
        raise LogRolledBack(f"{shown.size} entries, and {seen.size} were seen before", at=seen.origin, hint=_HINT)
    if shown.size == seen.size and shown.root != seen.root:
        raise LogForked(f"two different logs of {seen.size} entries", at=seen.origin, hint=_HINT)
    if shown.size == seen.size and shown.heads != seen.heads:
        raise LogForked(f"two different ends of streams with {seen.size} entries", at=seen.origin, hint=_HINT)
    if seen.time is not None and (shown.time is None or shown.time < seen.time):
        raise LogRolledBack(
            f"a checkpoint of {shown.time}, and one of {seen.time} was seen before", at=seen.origin, hint=_HINT
        )
    if not is_consistent(seen.size, seen.root, shown.size, root=shown.root, proof=proof):
        raise LogRewritten(f"its first {seen.size} entries are not proved the same", at=seen.origin, hint=_HINT)
    return shown
