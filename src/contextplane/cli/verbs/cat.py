"""Write an object's bytes to standard output.

REF is sha256:<hash> for any object, or ctx://<hash> or the first digits of a hash for the manifest of an
execution pack, or one of these with :PART for a part of it: REF:system_prompt, REF:prompts/0,
REF:inputs/NAME, REF:steps/3 (its output), REF:steps/3/parameters, REF:outputs/NAME. A name may have any
characters, / and : too; of several of one name the last is meant. pk_<id>@3 is a revision of a handoff pack.
Up to 8 MiB are checked before anything is written. Larger bytes are hashed as they are written: if they
turn out not to be what REF names, the command ends with status 11, and what was written must not be used.
On a terminal the control characters of a text are shown and not sent, and what is no text is refused;
anywhere else the bytes come out as they are. With --json they are only checked, and their digest and size
are told.
"""

import sys
from argparse import ArgumentParser, Namespace
from codecs import getincrementaldecoder
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean_lines
from contextplane.errors import ContextPlaneError, Family

if TYPE_CHECKING:
    from contextplane.model.ids import Digest
    from contextplane.model.reference import Reference

__all__ = ["NotAnObject", "NotText", "add_arguments", "run"]

_CHECKED_AHEAD = 8 << 20
_HINT = "write sha256:<hash> for any object; ctx://<hash>, its first digits or pk_<id> for a pack, :PART for a part"
_VERSION = "'ctx show' tells the digest of a version; write sha256:<hash>"


class NotAnObject(ContextPlaneError):
    """A reference to something that has no bytes of its own in the object store."""

    code: ClassVar[str] = "reference_not_an_object"
    family: ClassVar[Family] = "usage"


class NotText(ContextPlaneError):
    """Bytes that are no text were about to be written to a terminal."""

    code: ClassVar[str] = "not_text_for_terminal"
    family: ClassVar[Family] = "usage"


def _understood(text: str) -> "Reference":
    from contextplane.model.reference import FORMS, InvalidReference, parse_reference

    try:
        return parse_reference(text)
    except InvalidReference as error:
        error.hint = _HINT if error.hint == FORMS else error.hint
        raise


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="what to write")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.audit.load import load, part
    from contextplane.cli.open import opening
    from contextplane.cli.references import RECORDING, named_handoff
    from contextplane.model.ids import Digest, ExecutionRef, PackRef, RecordingId
    from contextplane.model.reference import ExecutionPrefix
    from contextplane.store.damage import short, telling
    from contextplane.store.find import find_execution_pack

    handoff = named_handoff(args.ref)
    if handoff is not None:
        from contextplane.cli.handoff.read import bytes_of

        data = bytes_of(handoff, screen)
        return _write([data], Digest.of(data), args.ref, screen)
    reference = _understood(args.ref)
    named = reference.named
    if not isinstance(named, Digest | ExecutionRef | ExecutionPrefix):
        hint = _VERSION if isinstance(named, PackRef) else _HINT
        hint = RECORDING % named if isinstance(named, RecordingId) else hint
        raise NotAnObject("not an object", at=args.ref, hint=hint)
    with opening(screen) as platform:
        digest = named if isinstance(named, Digest) else find_execution_pack(platform.catalog, named)
        where, what = short(digest), "its manifest"
        if isinstance(named, Digest):
            where, what = str(digest), "this object"
            platform.objects.size(digest)  # what nobody promised to be here is not missing: it is not found
        if reference.selector:
            where, what = short(digest, reference.selector), "its content"
            content = part(load(digest, platform.objects), reference.selector)
            if isinstance(content, bytes):
                return _write([content], Digest.of(content), args.ref, screen)
            digest = content
        with telling(where, what, digest):
            whole = not screen.json and platform.objects.size(digest) <= _CHECKED_AHEAD
            chunks = [platform.objects.get(digest)] if whole else platform.objects.stream(digest)
            return _write(chunks, digest, args.ref, screen)


def _write(chunks: Iterable[bytes], digest: "Digest", asked: str, screen: Screen) -> int:
    """`asked`: what was typed, which is what whoever typed it is told about."""
    if screen.json:
        screen.answer({"digest": str(digest), "size": sum(map(len, chunks))})
        return OK
    if screen.out.isatty():
        _show(chunks, asked, screen)
        return OK
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
    return OK


def _show(chunks: Iterable[bytes], asked: str, screen: Screen) -> None:
    """Show a text to somebody: nothing of it speaks to the terminal. Its beginning decides whether it is one."""
    following = iter(chunks)
    first = next(following, b"")
    if not _is_text(first):
        raise NotText("these bytes are no text", at=asked[:200], hint="write them to a file: ctx cat REF > FILE")
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    for chunk in chain([first], following):
        screen.out.write(clean_lines(decoder.decode(chunk)))
    screen.out.write(clean_lines(decoder.decode(b"", final=True)))


def _is_text(beginning: bytes) -> bool:
    try:
        getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False
    return b"\0" not in beginning
