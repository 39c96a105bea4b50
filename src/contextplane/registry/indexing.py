"""The index of the registry, made anew from its streams and compared with them. It judges no event.

What objects are, what keeps them, and the tree over the ends of streams are index. A tree that was made anew is no more
believed than the old one: its root must be the one that the newest checkpoint signs.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.ports.catalog import Transaction, View
from contextplane.ports.object_index import KindConflict, Recorded
from contextplane.ports.streams import StreamsView
from contextplane.registry.appending import index_objects, root_name
from contextplane.registry.changes import Change
from contextplane.registry.checkpoints import Standing
from contextplane.registry.events import objects_of, read_event
from contextplane.registry.heads import HeadsDamaged, KeptNodes, StreamCut, heads_of, put_heads
from contextplane.registry.streams import CHECKPOINTS, REGISTRY, SUBJECTS
from contextplane.registry.trouble import Trouble
from contextplane.trust.merkle import EMPTY_ROOT

__all__ = ["compare_ends", "compare_objects", "index_registry"]


def index_registry(tx: Transaction, size_of: Callable[[Digest], int]) -> None:
    """Make it anew. An event that is none keeps nothing; whoever verifies tells of it."""
    for stream, change in _changes(tx.streams):
        with suppress(KindConflict):  # named as two kinds of thing: comparing tells of it
            for kind, digest in objects_of(stream, change):
                tx.objects.record(Recorded(digest=digest, kind=kind, size=size_of(digest), traced=True))
            index_objects(tx.objects, stream, change)
    put_heads(tx.marks, EMPTY_ROOT, heads_of(tx.streams))


def compare_objects(view: View) -> Iterator[tuple[str, str]]:
    """What is not kept, or not known for what it is, each with the reason."""
    roots = dict(view.objects.roots(REGISTRY))
    for stream, change in _changes(view.streams):
        for kind, digest in objects_of(stream, change):
            recorded = view.objects.recorded(digest)
            if roots.get(root_name(digest)) != digest:
                yield str(digest), f"{stream} names it, and nothing keeps it"
            elif recorded is None or recorded.kind != kind or not recorded.traced:
                yield str(digest), f"{stream} names it as {kind}, and the index does not"


def compare_ends(view: View, standing: Standing | None) -> Iterator[Trouble]:
    """Whether streams end where the newest checkpoint says, and whether the tree in the index says so too."""
    nodes = KeptNodes()
    root = put_heads(nodes, EMPTY_ROOT, heads_of(view.streams))
    if root != (EMPTY_ROOT if standing is None else standing.heads):
        why = "streams do not end where the newest checkpoint says: 'ctx verify --registry' tells which"
        yield Trouble(code=StreamCut.code, at=CHECKPOINTS, message=why)
    for name, text in nodes.texts.items():
        if view.marks.get(name) != text:
            yield Trouble(code=HeadsDamaged.code, at=name, message="not what the ends of the streams give")


def _changes(streams: StreamsView) -> Iterator[tuple[str, Change]]:
    for prefix in SUBJECTS:
        for stream in list(streams.names(prefix)):
            for stored in streams.read(stream):
                try:
                    yield stream, read_event(stored.body)[1].change
                except ContextPlaneError:
                    continue
