"""Prints parts of execution packs: contents and their damage, diffs, suspected secrets, verdicts."""

import os
import re
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.exit import NOT_FOUND, OK, REFUSED, UNTRUSTED
from contextplane.cli.output import CommandOutput, clean, clean_tabbed, human_size, quantity, shorten

if TYPE_CHECKING:
    from contextplane.app.damage import RepairedObject
    from contextplane.app.execution.diff import TextDiff
    from contextplane.app.execution.load import ContentReader, LoadedPack
    from contextplane.app.execution.verify import ArtifactVerdict
    from contextplane.errors import ContextPlaneError

__all__ = [
    "ANSWER_COLOR",
    "STATUS_OF",
    "ContentLines",
    "bare_lines",
    "diff_lines",
    "locate_log_errors",
    "print_suspicions",
    "remedy",
    "repair_json",
    "repair_summary",
]

STATUS_OF = {"verified": OK, "modified": UNTRUSTED, "void": UNTRUSTED, "unchecked": REFUSED, "unknown": NOT_FOUND}
ANSWER_COLOR = {"verified": "green", "modified": "red", "void": "yellow", "unchecked": "yellow", "unknown": "yellow"}

_DIFF_COLOR = {"-": "red", "+": "green", "@": "dim", "\\": "dim"}
_LONGEST = 4000
_HEAD = _LONGEST * 4  # the most bytes that so many characters have
_INDENT = " " * 6
_SHORT = 12
_SIDECARS = "'ctx pack LOG --sidecars'"
_PATH = re.compile(r"/(?:inputs|outputs)/[0-9]+/path")

# --- contents of a run ---


class ContentLines:
    """Formats contents of a run. One that is damaged is named as such, and its bytes are not shown."""

    def __init__(self, reader: "ContentReader") -> None:
        self._reader = reader

    @property
    def unchecked(self) -> int:
        """The number of contents that were too large to be hashed."""
        return self._reader.unchecked

    def size(self, ref: str) -> str:
        """Return the size of a content, or its problem. Unless it is large it is hashed for that."""
        return self.problem(ref) or human_size(self._reader.check(ref).size)

    def problem(self, ref: str) -> str:
        return clean(self._reader.check(ref).problem)

    def lines(self, ref: str, indent: str) -> list[str]:
        """Return the beginning of a content, 4,000 characters, after all of it was hashed."""
        head = self._reader.head(ref, _HEAD)
        if head.problem:
            return [f"{indent}[{clean(head.problem)}]"]
        try:
            text = getincrementaldecoder("utf-8")().decode(head.data, final=head.size == len(head.data))
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            return [f"{indent}[{human_size(head.size)} that are not text]"]
        shown = text[:_LONGEST]
        left = head.size - len(shown.encode())
        lines = [indent + clean_tabbed(line) for line in shown.removesuffix("\n").split("\n")]
        return lines + ([f"{indent}[... {human_size(left)} more]"] if left else [])


def bare_lines(pack: "LoadedPack", contents: ContentLines, *, shown: bool) -> Iterator[str]:
    """Yield the name of a pack and of its damaged parts; `shown`: of every part, with its content."""
    from contextplane.model.execution.manifest import contents_of

    name = f"ctx://{pack.digest.hex}"
    yield name
    for part, ref in contents_of(pack.manifest):
        if ref and shown:
            yield f"{name}:{clean(part)}"
            yield from contents.lines(ref, _INDENT)
        elif ref and (problem := contents.problem(ref)):
            yield f"{name}:{clean(part)}  [{problem}]"


def diff_lines(text: "TextDiff", output: CommandOutput) -> Iterator[str]:
    """Yield a unified diff, or why the texts are not shown."""
    for line in text.lines:
        shown = shorten(clean_tabbed(line))
        yield output.paint(_DIFF_COLOR[line[0]], shown) if line[:1] in _DIFF_COLOR else shown
    if text.cut:
        yield output.paint("yellow", "(cut: there is more than this)")
    if text.why:
        color = "red" if text.state in {"damaged", "missing"} else "yellow"
        yield output.paint(color, f"({clean(text.why)})")


# --- what packing and importing report ---


def repair_summary(repaired: "Sequence[RepairedObject]") -> str:
    """Return `put back 1 object that was tampered with, 2 objects that were missing`."""
    from contextplane.app.damage import DAMAGE_LABEL

    counts = Counter(entry.damage for entry in repaired)
    parts = (f"{_objects(counts[damage])} {label}" for damage, label in DAMAGE_LABEL.items() if counts[damage])
    return f"restored {', '.join(parts)}"


def _objects(count: int) -> str:
    return f"{quantity(count, 'object')} that {'was' if count == 1 else 'were'}"


def repair_json(repaired: "Sequence[RepairedObject]") -> list[dict[str, str]]:
    return [{"digest": str(entry.digest), "damage": entry.damage} for entry in repaired]


def print_suspicions(output: CommandOutput, suspects: Sequence[tuple[str, str]], unsearched: Sequence[str]) -> None:
    """Warn of what looks like a secret, also with --quiet: what was stored may have to be removed."""
    for at, kind in suspects:
        output.warn(f"{clean(at)} may contain a secret ({kind}); it was stored unchanged")
    if unsearched:
        some = (
            f"{clean(unsearched[0])} and {quantity(len(unsearched) - 1, 'other')}"
            if unsearched[1:]
            else clean(unsearched[0])
        )
        output.note(f"only the first 256 KiB of {some} were searched for secrets")


@contextmanager
def locate_log_errors(log: str, root: str) -> Iterator[None]:
    """Add to the errors of a log its name, unless it is standard input, and the folder of its paths."""
    from contextplane.app.execution.pack import LOG_ERRORS, PATH_ERRORS

    try:
        yield
    except LOG_ERRORS as error:
        below = f"paths are read below {clean(os.path.abspath(root))}; --root FOLDER names another"
        if isinstance(error, PATH_ERRORS):
            error.hint = below
        elif _names_a_path(error):
            error.hint = f"{error.hint}; {below}"
        if log != "-":
            error.under(f"{log}#" if error.at else log)
        raise


def _names_a_path(error: "ContextPlaneError") -> bool:
    """Whether the path of an input or an output is among several problems."""
    problems = error.details.get("problems")
    return isinstance(problems, list) and any(_PATH.fullmatch(str(problem["at"])) for problem in problems)


# --- answers of `ctx verify` ---


def remedy(verdict: "ArtifactVerdict") -> str:
    """Return what to do about a file that is not verified; nothing for one that is."""
    if verdict.answer == "verified":
        return ""
    if verdict.answer == "unknown":
        if verdict.sidecar is None:
            return f"if a run wrote it, {_SIDECARS} with the log of that run writes one"
        return "'ctx import' imports that run from an archive, 'ctx pack' packs its log"
    if verdict.pack is None:
        unread = "" if verdict.sidecar is None else "; if the pack cannot be read, see 'ctx fsck'"
        return f"move the sidecar away, and {_SIDECARS} writes it again{unread}"
    run = verdict.pack.digest.hex[:_SHORT]
    if verdict.expected is None:
        return f"'ctx show {run}' lists the outputs: the file must have the name and place of its output"
    own = f"'ctx cat {run}:outputs/{verdict.expected.name}' prints the recorded output"
    return f"{own}; if a later run wrote it again, {_SIDECARS} with that run's log replaces the sidecar"
