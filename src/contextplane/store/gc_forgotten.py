"""Whether what would be collected is named by something that must be kept. What is gone does not come back.

Who collects walks recorded edges. This asks those who say what they are made from: manifests, events and streams.
"""

from collections.abc import Iterator, Sequence

from contextplane.model.execution import references
from contextplane.model.ids import Digest
from contextplane.ports.catalog import View
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.objects import Objects
from contextplane.store.finding import Comparison
from contextplane.store.gc_blocked import GcBlocked, named
from contextplane.store.handoff_gc import unkept_revisions
from contextplane.store.trace import read_manifest_bytes

__all__ = ["refuse_if_forgotten"]


def refuse_if_forgotten(
    view: View,
    going: Sequence[Digest],
    entries: ExecutionEntries,
    objects: Objects,
    others: Sequence[Comparison] = (),
) -> list[Digest]:
    """What of this may go. Refuse when the index should know better: then it has lost what keeps something alive.

    A pack that came since the index was brought in step is not in it yet; what that one names stays.
    """
    if not going:
        return []
    left, forgotten = dict.fromkeys(going), list(unkept_revisions(view))
    for pack, names in _said_by_packs(entries, objects):
        if names is None:
            lost = not view.objects.targets(pack)
        else:
            wanted = left.keys() & names
            lost = bool(wanted) and view.packs.row(pack) is not None
            for digest in wanted:
                del left[digest]
        if lost:
            forgotten.append(f"ctx://{pack.hex}")
    forgotten += [finding.what for compared in others for finding in compared(view) if finding.state == "index"]
    if forgotten:
        raise GcBlocked(
            f"the index has lost what keeps something alive: {named(forgotten)}",
            hint="'ctx fsck' tells more, 'ctx fsck --rebuild' makes the index anew",
            details={"forgotten": forgotten},
        )
    return list(left)


def _said_by_packs(entries: ExecutionEntries, objects: Objects) -> Iterator[tuple[Digest, set[Digest] | None]]:
    """Every registered pack with all that it consists of, its line of parents too; None of one that cannot be read.

    What is only mentioned is kept where it was there when the pack came, and not for ever.
    """
    registered = set(entries.names())
    seen: set[Digest] = set()
    for pack in sorted(registered):
        names: set[Digest] = set()
        todo = [pack]
        while todo:
            one = todo.pop()
            manifest = read_manifest_bytes(one, objects)
            refs = references(manifest) if manifest is not None else None
            if refs is None:
                continue
            names |= {one, *(digest for _, digest in refs.found)}
            parents = {digest for role, digest in refs.found if role == "parent"} - registered - seen
            seen |= parents
            todo += parents
        yield pack, names or None
