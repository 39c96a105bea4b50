"""Which versions of an id were published, and the one before a number. It lists names, and reads no event."""

from contextplane.model.ids import PackRef
from contextplane.ports.streams import StreamsView
from contextplane.registry.streams import VERSIONS

__all__ = ["predecessor", "versions_of"]


def versions_of(streams: StreamsView, base_id: str = "") -> list[PackRef]:
    """Every version that was ever published, of one id or of all, by id and number."""
    prefix = f"{VERSIONS}{base_id}@" if base_id else VERSIONS
    return sorted(PackRef.parse(name.removeprefix(VERSIONS)) for name in streams.names(prefix))


def predecessor(streams: StreamsView, ref: PackRef) -> PackRef | None:
    """The highest published version below a number: 1.0.1 comes after 1.0.0, also when 2.0.0 is out."""
    below = [one for one in versions_of(streams, ref.pack_id) if one.release < ref.release]
    return below[-1] if below else None
