"""An execution pack without a word around it: what it is called, and with --content what its contents say."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.cli.screen import clean
from contextplane.model.parts import contents_of

if TYPE_CHECKING:
    from contextplane.audit.load import LoadedPack
    from contextplane.cli.contents import Contents

__all__ = ["bare_contents"]

_INDENT = " " * 6


def bare_contents(pack: "LoadedPack", contents: "Contents", *, shown: bool) -> Iterator[str]:
    """The pack, then each of its parts that is not whole; `shown`: every part that has a content, and that below it."""
    name = f"ctx://{pack.digest.hex}"
    yield name
    for part, ref in contents_of(pack.manifest):
        if ref and shown:
            yield f"{name}:{clean(part)}"
            yield from contents.lines(ref, _INDENT)
        elif ref and (wrong := contents.wrong(ref)):
            yield f"{name}:{clean(part)}  [{wrong}]"
