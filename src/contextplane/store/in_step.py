"""Whether the index is in step with the registered packs: the question every verb begins with, so it costs little."""

from contextplane.ports.catalog import Catalog
from contextplane.ports.entries import ExecutionEntries

__all__ = ["MARK", "PACKS", "in_step"]

PACKS = "packs/"
"""The prefix of the roots that registered packs are."""

MARK = "packs"
"""The mark that holds the state of the entries as of when the index was last brought in step."""


def in_step(catalog: Catalog, entries: ExecutionEntries) -> bool:
    """Whether no pack came since the index was last brought in step. One look at the folder's time."""
    state = entries.state()
    with catalog.read() as view:
        return state is not None and view.marks.get(MARK) == state
