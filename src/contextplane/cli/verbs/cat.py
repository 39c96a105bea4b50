"""Write the bytes of an object to standard output.

REF is one of:
  - sha256:<hash>, any object
  - ctx://<hash> or the first digits of a hash, the manifest of an execution pack
  - pk_<id>@3, a revision of a handoff pack
  - REF:PART, a part of an execution pack: system_prompt, prompts/0, inputs/NAME, steps/3 (its output),
    steps/3/parameters or outputs/NAME. If several parts have the same name, the last one is meant.

Up to 8 MiB are verified before anything is written. Larger objects are hashed while they are written: if the bytes are
not those that REF names, the status is 11, and the output must not be used. On a terminal, control characters are
escaped and binary contents are refused. --json only verifies, and prints digest and size.

Examples:
  ctx cat 3fa9                      print a manifest
  ctx cat 3fa9:outputs/answer.md    print an output
"""

import sys
from argparse import ArgumentParser, Namespace
from codecs import getincrementaldecoder
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean_lines
from contextplane.errors import ContextPlaneError, Family

if TYPE_CHECKING:
    from contextplane.model.ids import Digest

__all__ = ["NotAnObject", "NotText", "add_arguments", "run"]

_CHECKED_AHEAD = 8 << 20
_HINT = "write sha256:<hash> for any object; ctx://<hash>, its first digits or pk_<id> for a pack, :PART for a part"
_VERSION = "'ctx show' prints the digest of a version; write sha256:<hash>"


class NotAnObject(ContextPlaneError):
    """A reference to something that has no bytes of its own in the object store."""

    code: ClassVar[str] = "reference_not_an_object"
    family: ClassVar[Family] = "usage"


class NotText(ContextPlaneError):
    """Bytes that are no text were about to be written to a terminal."""

    code: ClassVar[str] = "not_text_for_terminal"
    family: ClassVar[Family] = "usage"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="the object")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.execution.load import open_content
    from contextplane.app.references import HandoffTarget, RecordingTarget, RunTarget, VersionTarget, resolve
    from contextplane.cli.store import open_store

    target = resolve(args.ref, hint=_HINT)
    if isinstance(target, HandoffTarget):
        from contextplane.cli.handoff.packs import revision_bytes
        from contextplane.model.ids import Digest

        data = revision_bytes(target.ref, output)
        return _write([data], Digest.of(data), args.ref, output)
    if not isinstance(target, RunTarget):
        hint = _VERSION if isinstance(target, VersionTarget) else _HINT
        hint = target.hint if isinstance(target, RecordingTarget) else hint
        raise NotAnObject("not an object", at=args.ref, hint=hint)
    with (
        open_store(output) as platform,
        # With --json nothing is written before all of it is checked, however large it is.
        open_content(platform, target, checked_ahead=0 if output.json else _CHECKED_AHEAD) as content,
    ):
        return _write(content.chunks, content.digest, args.ref, output)


def _write(chunks: Iterable[bytes], digest: "Digest", ref: str, output: CommandOutput) -> int:
    """Write the bytes to standard output, or their digest and size with --json; `ref` is what was typed."""
    if output.json:
        output.answer({"digest": str(digest), "size": sum(map(len, chunks))})
        return OK
    if output.out.isatty():
        _show(chunks, ref, output)
        return OK
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
    return OK


def _show(chunks: Iterable[bytes], ref: str, output: CommandOutput) -> None:
    """Show a text on a terminal, control characters escaped. Its beginning decides whether it is text."""
    following = iter(chunks)
    first = next(following, b"")
    if not _is_text(first):
        raise NotText("this is binary data", at=ref[:200], hint="write them to a file: ctx cat REF > FILE")
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    for chunk in chain([first], following):
        output.out.write(clean_lines(decoder.decode(chunk)))
    output.out.write(clean_lines(decoder.decode(b"", final=True)))


def _is_text(beginning: bytes) -> bool:
    try:
        getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False
    return b"\0" not in beginning
