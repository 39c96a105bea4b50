"""Loads a recorded run: its manifest, its line of parents, and its contents, each checked by its hash."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from contextplane.app.damage import DAMAGE_LABEL, damage_by
from contextplane.app.platform import Platform
from contextplane.app.references import RunTarget, find_run
from contextplane.audit.load import LoadedPack, find_part, load_pack
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.value import Value
from contextplane.store.damage import damage_context, damage_in, short_ref
from contextplane.store.find import find_execution_pack

__all__ = [
    "ContentCheck",
    "ContentHead",
    "ContentReader",
    "LoadedPack",
    "OpenContent",
    "ParentRun",
    "load_registered",
    "load_run",
    "open_content",
    "parent_runs",
]

_CHECKED_EACH, _CHECKED_ALL = 8 << 20, 64 << 20
_SHOWN = 80


class ParentRun(Value, frozen=True):
    """A run in the line of parents. `digest`: None if `ref` is none; `problem`: why it was not loaded."""

    ref: str
    digest: Digest | None
    problem: str = ""


class OpenContent(Value, frozen=True):
    """The bytes of an object, or of a part of a run, in chunks that are hashed as they are read."""

    digest: Digest
    chunks: Iterable[bytes]


class ContentCheck(Value, frozen=True):
    """The size of a content, and what is wrong with it."""

    size: int
    problem: str = ""


class ContentHead(Value, frozen=True):
    """The first bytes of a content, the size of all of it, and what is wrong with it."""

    data: bytes
    size: int
    problem: str = ""


def load_run(platform: Platform, text: str) -> LoadedPack:
    """Load the execution pack that a text names; refuse everything else."""
    return load_registered(platform, find_run(text, platform))


def load_registered(platform: Platform, digest: Digest) -> LoadedPack:
    return load_pack(digest, platform.objects)


def parent_runs(platform: Platform, pack: LoadedPack) -> Iterator[ParentRun]:
    """Yield the parents of a pack, each forked from the next, up to the first that cannot be loaded."""
    parent = pack.manifest.parent
    while parent:
        try:
            digest = Digest.parse(parent)
        except InvalidId:
            yield ParentRun(ref=parent, digest=None, problem="not a reference")
            return
        try:
            loaded = load_pack(digest, platform.objects)
        except ContextPlaneError as error:
            damage = damage_by(error)
            problem = DAMAGE_LABEL[damage] if damage else "not a manifest"
            # A pack that was never here is not missing.
            yield ParentRun(
                ref=parent, digest=digest, problem=problem if _is_known(platform, digest) else "not in this store"
            )
            return
        yield ParentRun(ref=parent, digest=loaded.digest)
        parent = loaded.manifest.parent


def _is_known(platform: Platform, digest: Digest) -> bool:
    with platform.catalog.read() as view:
        return view.packs.row(digest) is not None


@contextmanager
def open_content(platform: Platform, target: RunTarget, *, checked_ahead: int) -> Iterator[OpenContent]:
    """Open the bytes that a reference names: an object, the manifest of a run, or a part of a run.

    Contents of up to `checked_ahead` bytes are verified before the first chunk. Damage, also if it is found in the
    block, is an error that names the run and its part.
    """
    ref = target.ref
    if isinstance(ref, Digest):
        digest, where, what = ref, str(ref), "this object"
        platform.objects.size(digest)  # an object that no manifest names is not missing: it is not found
    else:
        digest = find_execution_pack(platform.catalog, ref)
        where, what = short_ref(digest), "its manifest"
    if target.selector:
        where, what = short_ref(digest, target.selector), "its content"
        part = find_part(load_pack(digest, platform.objects), target.selector)
        if isinstance(part, bytes):
            yield OpenContent(digest=Digest.of(part), chunks=[part])
            return
        digest = part
    with damage_context(where, what, digest):
        whole = platform.objects.size(digest) <= checked_ahead
        chunks = [platform.objects.get(digest)] if whole else platform.objects.stream(digest)
        yield OpenContent(digest=digest, chunks=chunks)


class ContentReader:
    """Reads contents of a run one after another.

    `check` hashes contents of up to 8 MiB, 64 MiB in all; `unchecked` counts the others.
    """

    def __init__(self, platform: Platform) -> None:
        self._objects = platform.objects
        self._left = _CHECKED_ALL
        self._checks: dict[str, ContentCheck] = {}
        self.unchecked = 0

    def check(self, ref: str) -> ContentCheck:
        if ref not in self._checks:
            self._checks[ref] = self._check(ref)
        return self._checks[ref]

    def head(self, ref: str, length: int) -> ContentHead:
        """Read the first `length` bytes of a content, after all of it was hashed."""
        head, size = b"", 0
        try:
            for chunk in self._objects.stream(Digest.parse(ref)):
                head += chunk[: length - len(head)] if len(head) < length else b""
                size += len(chunk)
        except ContextPlaneError as error:
            return ContentHead(data=b"", size=0, problem=_problem(ref, error))
        return ContentHead(data=head, size=size)

    def _check(self, ref: str) -> ContentCheck:
        try:
            digest = Digest.parse(ref)
            size = self._objects.size(digest)
            if size > min(_CHECKED_EACH, self._left):
                self.unchecked += 1
                return ContentCheck(size=size)
            self._left -= size
            damage = damage_in(self._objects.check(digest))
        except ContextPlaneError as error:
            return ContentCheck(size=0, problem=_problem(ref, error))
        return ContentCheck(size=size, problem="" if damage is None else DAMAGE_LABEL[damage])


def _problem(ref: str, error: ContextPlaneError) -> str:
    damage = damage_by(error)
    return f"not a reference: {ref[:_SHOWN]}" if damage is None else DAMAGE_LABEL[damage]
