"""The contents of a pack, told to people: how large they are, what they say, what is wrong with them.

An execution pack without a word around it: what it is called, and with --content what its contents say.

What was put back, told: to people how many, to machines which.

What looking for secrets showed, told to people: where something looks like one, and how much was not looked at.

A unified diff, told to people.

The four answers of `ctx verify`: how each ends the command, its colour, and of a file the way out.

What is wrong in a log, told to whoever packs it: which file it is in, and where its paths are looked for.
"""

import os
import re
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.exit import NOT_FOUND, OK, REFUSED, UNTRUSTED
from contextplane.cli.output import CommandOutput, clean, quantity, human_size, shorten
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.manifest import contents_of
from contextplane.model.ids import Digest
from contextplane.store.damage import DAMAGE_LABEL, damage_by, damage_in

if TYPE_CHECKING:
    from contextplane.app.execution.verify import ArtifactVerdict
    from contextplane.audit.load import LoadedPack
    from contextplane.audit.text_diff import TextDiff
    from contextplane.ports.objects import Objects
    from contextplane.store.damage import RepairedObject

__all__ = [
    "ANSWER_COLOR",
    "STATUS_OF",
    "ContentLines",
    "bare_lines",
    "repair_json",
    "locate_log_errors",
    "repair_summary",
    "print_suspicions",
    "diff_lines",
    "remedy",
]

_LONGEST = 4000
_HEAD = _LONGEST * 4  # so many characters have no more bytes
_CHECKED_EACH, _CHECKED_ALL = 8 << 20, 64 << 20
_SHOWN = 80


class ContentLines:
    """Tells of one content after another. What is not whole is named as such, and its bytes are not shown."""

    def __init__(self, objects: "Objects") -> None:
        self._objects = objects
        self._left = _CHECKED_ALL
        self._sizes: dict[str, str] = {}
        self._wrong: dict[str, str] = {}
        self.unchecked = 0

    def size(self, ref: str) -> str:
        """How large it is, or what is wrong with it. It is hashed for that, unless it is large or many were before."""
        if ref not in self._sizes:
            self._sizes[ref] = self._size(ref)
        return self._sizes[ref]

    def wrong(self, ref: str) -> str:
        """What is wrong with it, as far as it was looked at."""
        self.size(ref)
        return self._wrong.get(ref, "")

    def _size(self, ref: str) -> str:
        try:
            digest = Digest.parse(ref)
            size = self._objects.size(digest)
            if size > min(_CHECKED_EACH, self._left):
                self.unchecked += 1
                return human_size(size)
            self._left -= size
            damage = damage_in(self._objects.check(digest))
        except ContextPlaneError as error:
            return self._wrong.setdefault(ref, _damage_text(ref, error))
        return human_size(size) if damage is None else self._wrong.setdefault(ref, DAMAGE_LABEL[damage])

    def lines(self, ref: str, indent: str) -> list[str]:
        """The beginning of what it says, after all of it was hashed: 4,000 characters."""
        head, size = b"", 0
        try:
            for chunk in self._objects.stream(Digest.parse(ref)):
                head += chunk[: _HEAD - len(head)] if len(head) < _HEAD else b""
                size += len(chunk)
        except ContextPlaneError as error:
            return [f"{indent}[{_damage_text(ref, error)}]"]
        try:
            text = getincrementaldecoder("utf-8")().decode(head, final=size == len(head))
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            return [f"{indent}[{human_size(size)} that are not text]"]
        shown = text[:_LONGEST]
        rest = size - len(shown.encode())
        # A tab is the one control character that texts are made with, and does no harm.
        told = [indent + "\t".join(map(clean, line.split("\t"))) for line in shown.removesuffix("\n").split("\n")]
        return told + ([f"{indent}[... {human_size(rest)} more]"] if rest else [])


def _damage_text(ref: str, error: ContextPlaneError) -> str:
    damage = damage_by(error)
    return f"not a reference: {clean(ref[:_SHOWN])}" if damage is None else DAMAGE_LABEL[damage]


_INDENT = " " * 6


def bare_lines(pack: "LoadedPack", contents: "ContentLines", *, shown: bool) -> Iterator[str]:
    """The pack, then each of its parts that is not whole; `shown`: every part that has a content, and that below it."""
    name = f"ctx://{pack.digest.hex}"
    yield name
    for part, ref in contents_of(pack.manifest):
        if ref and shown:
            yield f"{name}:{clean(part)}"
            yield from contents.lines(ref, _INDENT)
        elif ref and (wrong := contents.wrong(ref)):
            yield f"{name}:{clean(part)}  [{wrong}]"


def repair_summary(put_back: "Sequence[RepairedObject]") -> str:
    """`put back 1 object that was tampered with, 2 objects that were missing`."""
    counts = Counter(put_back.damage for put_back in put_back)
    told = (f"{_objects(counts[damage])} {mark}" for damage, mark in DAMAGE_LABEL.items() if counts[damage])
    return f"put back {', '.join(told)}"


def repair_json(put_back: "Sequence[RepairedObject]") -> list[dict[str, str]]:
    return [{"digest": str(put_back.digest), "damage": put_back.damage} for put_back in put_back]


def _objects(count: int) -> str:
    return f"{quantity(count, 'object')} that {'was' if count == 1 else 'were'}"


def print_suspicions(output: CommandOutput, suspects: Sequence[tuple[str, str]], unsearched: Sequence[str]) -> None:
    """Silence hides no suspicion: what was stored may have to be removed."""
    for at, kind in suspects:
        output.warn(f"{clean(at)} looks like it holds a secret ({kind}); it was stored as it is")
    if unsearched:
        some = (
            f"{clean(unsearched[0])} and {quantity(len(unsearched) - 1, 'other')}"
            if unsearched[1:]
            else clean(unsearched[0])
        )
        output.note(f"only the first 256 KiB of {some} were searched for secrets")


_COLOR = {"-": "red", "+": "green", "@": "dim", "\\": "dim"}


def diff_lines(text: "TextDiff", output: CommandOutput) -> Iterator[str]:
    """The differing texts, or why they are not shown."""
    for line in text.lines:
        # A tab is the one control character that texts are made with, and does no harm.
        shown = shorten("\t".join(map(clean, line.split("\t"))))
        yield output.paint(_COLOR[line[0]], shown) if line[:1] in _COLOR else shown
    if text.cut:
        yield output.paint("yellow", "(cut: there is more than this)")
    if text.why:
        color = "red" if text.state in {"damaged", "missing"} else "yellow"
        yield output.paint(color, f"({clean(text.why)})")


STATUS_OF = {"verified": OK, "modified": UNTRUSTED, "unchecked": REFUSED, "unknown": NOT_FOUND}
ANSWER_COLOR = {"verified": "green", "modified": "red", "unchecked": "yellow", "unknown": "yellow"}

_SIDECARS = "'ctx pack LOG --sidecars'"
_SHORT = 12


def remedy(verdict: "ArtifactVerdict") -> str:
    """What to do about a file that is not verified; nothing of one that is."""
    if verdict.answer == "verified":
        return ""
    if verdict.answer == "unknown":
        if verdict.sidecar is None:
            return f"if a run put it out, {_SIDECARS} with the log of that run writes one"
        return "'ctx import' brings that run from an archive, 'ctx pack' from its log"
    if verdict.pack is None:
        unread = "" if verdict.sidecar is None else "; if the pack cannot be read, 'ctx fsck' tells why"
        return f"move the sidecar away, and {_SIDECARS} writes it anew{unread}"
    run = verdict.pack.digest.hex[:_SHORT]
    if verdict.expected is None:
        return f"'ctx show {run}' lists the outputs: the file must have the name and the place of the one that it is"
    own = f"'ctx cat {run}:outputs/{verdict.expected.name}' gives what the run put out"
    return f"{own}; if a later run put it out anew, {_SIDECARS} with that run's log replaces the sidecar"


_PATH = re.compile(r"/(?:inputs|outputs)/[0-9]+/path")


@contextmanager
def locate_log_errors(log: str, root: str) -> Iterator[None]:
    """What is wrong in `log` is told with its name, unless that is standard input; its paths lie below `root`."""
    from contextplane.model.execution.manifest import ManifestInvalid
    from contextplane.model.problems import DocumentInvalid
    from contextplane.ports.objects import SourceUnreadable
    from contextplane.ports.world import OutsideRoot
    from contextplane.record.pack_log import UNUSABLE

    try:
        yield
    except (DocumentInvalid, ManifestInvalid, *UNUSABLE) as error:
        below = f"a path is looked for below {clean(os.path.abspath(root))}; --root FOLDER names another"
        if isinstance(error, SourceUnreadable | OutsideRoot):
            error.hint = below
        elif _names_a_path(error):
            error.hint = f"{error.hint}; {below}"
        if log != "-":
            error.under(f"{log}#" if error.at else log)
        raise


def _names_a_path(error: "ContextPlaneError") -> bool:
    """Whether the path of an input or of an output is among several things that are wrong."""
    listed = error.details.get("problems")
    return isinstance(listed, list) and any(_PATH.fullmatch(str(one["at"])) for one in listed)
