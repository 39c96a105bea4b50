"""Write an object's bytes to standard output.

REF is sha256:<hash> for any object, or ctx://<hash> or the first digits of a hash for the manifest of an
execution pack, or one of these with :PART for a part of it: REF:system_prompt, REF:prompts/0,
REF:inputs/NAME, REF:steps/3, REF:outputs/NAME.
Up to 8 MiB are checked before anything is written. Larger bytes are hashed as they are written: if they
turn out not to be what REF names, the command ends with status 11, and what was written must not be used.
With --json the bytes are only checked, and their digest and size are told.
"""

import sys
from argparse import ArgumentParser, Namespace
from typing import ClassVar

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen
from contextplane.errors import ContextPlaneError, Family

__all__ = ["NotAnObject", "add_arguments", "run"]

_CHECKED_AHEAD = 8 << 20


class NotAnObject(ContextPlaneError):
    """A reference to something that has no bytes of its own in the object store."""

    code: ClassVar[str] = "reference_not_an_object"
    family: ClassVar[Family] = "usage"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="what to write")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.audit.load import load, part_digest
    from contextplane.cli.opening import opening
    from contextplane.model.ids import Digest, ExecutionRef
    from contextplane.model.reference import ExecutionPrefix, parse_reference
    from contextplane.store.find import find_execution_pack

    reference = parse_reference(args.ref)
    named = reference.named
    if not isinstance(named, Digest | ExecutionRef | ExecutionPrefix):
        hint = "write sha256:<hash> for any object; ctx://<hash> or its first digits for a pack, :PART for a part"
        raise NotAnObject("not an object", at=args.ref, hint=hint)
    with opening(screen) as platform:
        digest = named if isinstance(named, Digest) else find_execution_pack(platform.catalog, named)
        if reference.selector:
            digest = part_digest(load(digest, platform.objects), reference.selector)
        if screen.json:
            size = sum(len(chunk) for chunk in platform.objects.stream(digest))
            screen.answer({"digest": str(digest), "size": size})
            return OK
        whole = platform.objects.size(digest) <= _CHECKED_AHEAD
        for chunk in [platform.objects.get(digest)] if whole else platform.objects.stream(digest):
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    return OK
