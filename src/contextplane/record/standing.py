"""How a recording stands, for whoever records it or finishes it."""

from contextplane.model.ids import Digest, RecordingId
from contextplane.record.folding import Began, Noted

__all__ = ["Standing"]


class Standing:
    """What a recording is called, which pack it became, and what in it looks like a secret."""

    def __init__(self, recording_id: RecordingId) -> None:
        self._id = recording_id
        self._digest: Digest | None = None
        self._suspects: list[tuple[str, str]] = []
        self._unsearched: list[str] = []
        self._remembered = True

    @property
    def id(self) -> str:
        """What it is resumed and finalized by."""
        return str(self._id)

    @property
    def digest(self) -> Digest | None:
        """The pack that it became, once it is finished."""
        return self._digest

    @property
    def reference(self) -> str | None:
        """The same, as it is written on a command line."""
        return f"ctx://{self._digest.hex}" if self._digest else None

    @property
    def suspects(self) -> tuple[tuple[str, str], ...]:
        """Where something looks like a secret, and like which kind. It is recorded as it is."""
        return tuple(self._suspects)

    @property
    def unsearched(self) -> tuple[str, ...]:
        """Of which contents, too large for it, only the beginning was looked at for secrets."""
        return tuple(self._unsearched)

    @property
    def remembered(self) -> bool:
        """Whether these two are still known. The events of a recording that became a pack may be collected."""
        return self._remembered

    def _told(self, at: str, event: Began | Noted) -> None:
        self._suspects += [(f"{at}/{field}", kind) for field, kind in event.suspects]
        self._unsearched += [f"{at}/{field}" for field in event.unsearched]
