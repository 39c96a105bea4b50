"""The finalize checklist: what a pack must have before its status may be `finalized`.

It needs sections with content, a verdict, and refs whose lines are still there. All that is missing is reported at
once. A verdict is a field of the qa section, not the mere word, and not in code, comments or struck out.
"""

import re
from collections.abc import Callable, Iterator

from msgspec import UNSET, UnsetType

from contextplane.handoff.errors import FinalizeRefused
from contextplane.handoff.markdown import one_line, shorten
from contextplane.handoff.source import LocatedRef
from contextplane.model.handoff import HandoffPack, LineRange, Ref, Section
from contextplane.model.value import Value

__all__ = ["MovedRef", "UnanchoredRef", "check_finalizable", "unanchored_refs", "verdict"]

# --- the verdict ------------------------------------------------------------------------------------------------------

_LONGEST_HEADING = 120
_BELOW = 10
"""A verdict is less than so many lines below its heading."""
_MARKS = "*_`\"'~ \t"
# `verdict: pass`, `**Verdict:** pass`, `"verdict": "pass"`, `QA verdict = fail`, `| verdict | pass |`.
_FIELD = rf"(?i)(?<![\w-])(?P<before>[a-z]+[ \t]+)?verdict[{_MARKS}]*(?:[:=\uff1a]|[|](?=[^|]*[|]))(?P<value>.*)"
# `Verdict - pass` at the start of a line; in the middle of one that is a sentence.
_DASHED = (
    rf"(?i)(?:[#>+*-]+[ \t]+)*[{_MARKS}]*(?:(?:final|overall|qa|review)[ \t]+)?verdict"
    rf"[*_`]*[ \t]+[-\u2013\u2014][ \t]+(?P<value>.*)"
)
_FENCE = r"\s*(?P<run>`{3,}|~{3,})(?P<info>.*)"
_STRUCK = r"~~[^~]+~~"
_HEADING = rf"(?i)(?:[#>+*-]+[ \t]+)*[{_MARKS}]*(?:(?:final|overall|qa|review)[ \t]+)?verdict[{_MARKS}#:\uff1a]*"
_LIST_MARK = r"(?:[>+*-][ \t]+|\d+[.)][ \t]+)+"
_TABLE_RULE = frozenset(" \t|:-")
# Placeholders for a verdict that is still open.
_OPEN = (
    r"(?i)(?:none|no verdict|not)(?:[ \t]+(?:yet|so far|available|decided|given|set|known)\b.*)?|n/?a|open|to follow|"
    r"(?:tbd|todo|pending|to be (?:done|decided|determined|defined))\b.*|<[^>]*>|[-.?_\u2013\u2014\u2026]*"
)
_DENIED = frozenset({"no", "not", "without", "missing", "any"})


def verdict(pack: HandoffPack) -> str | None:
    """The verdict of the qa section, on one line; None when there is none, or it is still open.

    Several verdicts that differ are all returned, in their order: none is hidden.
    """
    verdicts = {
        verdict.casefold(): verdict
        for section in pack.sections
        if section.key == "qa"
        for verdict in _verdicts(section)
    }
    return shorten(" / ".join(verdicts.values())) or None


def _verdicts(section: Section) -> Iterator[str]:
    titled = [(section.title, section.description)]
    titled += [(ref.title or "", ref.why) for ref in section.refs]
    titled += [(diagram.title, diagram.why) for diagram in section.diagrams]
    for title, body in titled:
        # A title is the heading of its text.
        lines = [_strip_struck(one_line(title)), *_visible_lines(body or "")]
        for at, line in enumerate(lines):
            value = _verdict_in_line(line, lines[at + 1 : at + _BELOW]) if "verdict" in line.casefold() else ""
            if not re.fullmatch(_OPEN, value):
                yield value


def _visible_lines(text: str) -> list[str]:
    """The lines of a text without code fences, comments and struck out words."""
    lines = "\n".join(_outside_fences(text)) if "```" in text or "~~~" in text else text
    return [_strip_struck(line) for line in _strip_comments(lines).splitlines()]


def _outside_fences(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines():
        match = re.match(_FENCE, line)
        if fence:
            closes = match and match["run"].startswith(fence) and not match["info"].strip()
            fence = "" if closes else fence
        elif match and (match["run"][0] == "~" or "`" not in match["info"]):
            fence = match["run"]
        else:
            yield line


def _strip_comments(text: str) -> str:
    """Remove comments. One that is never closed hides the rest if it begins a line, and else is none."""
    pieces: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        end = text.find("-->", start)
        if end < 0:
            begins = not text[text.rfind("\n", 0, start) + 1 : start].strip()
            return "".join(pieces) + text[at : start if begins else None]
        pieces.append(text[at:start])
        at = end + len("-->")
    return "".join(pieces) + text[at:]


def _strip_struck(line: str) -> str:
    return re.sub(_STRUCK, "", line) if "~~" in line else line


def _verdict_in_line(line: str, below: list[str]) -> str:
    """The verdict that a line gives, `""` when it gives none. `below`: the lines after it."""
    if len(line) <= _LONGEST_HEADING and re.fullmatch(_HEADING, line.strip()):
        first = next((text.strip() for text in below if text.strip()), "#")
        return "" if first.startswith("#") else _strip_marks(re.sub(_LIST_MARK, "", first, count=1))
    dashed = re.match(_DASHED, line.strip())
    if dashed:
        return _strip_marks(dashed["value"])
    match = re.search(_FIELD, line)
    if match is None or (match["before"] or "").strip().casefold() in _DENIED:
        return ""
    heads_a_table = line.lstrip().startswith("|") and below and _TABLE_RULE.issuperset(below[0])
    return "" if heads_a_table else _strip_marks(match["value"])


def _strip_marks(value: str) -> str:
    """Remove the marks of emphasis, quotation, tables and JSON around a value."""
    return shorten(value.replace("**", "").strip(_MARKS + "|,{}"))


# --- the checklist ----------------------------------------------------------------------------------------------------

_REQUIRED = ("scope", "findings", "qa")
_SUBSTANTIAL = ("scope", "findings")
_SAMPLED = 10


class MovedRef(Value, frozen=True):
    """A ref whose lines are elsewhere in their file now, or in a file that was renamed to `now_path`."""

    section_key: str
    ref_key: str
    path: str
    was: LineRange
    now: LineRange
    now_path: str | UnsetType = UNSET


def check_finalizable(pack: HandoffPack, locate: Callable[[Ref], LocatedRef]) -> tuple[MovedRef, ...]:
    """Raise `FinalizeRefused` with all that is missing or stale; return the refs that only moved."""
    sections = {section.key: section for section in pack.sections}
    missing_sections = [key for key in _REQUIRED if key not in sections]
    missing_fields = list(_missing_fields(sections, pack))
    refs = [(section, ref, locate(ref)) for section in pack.sections for ref in section.refs]
    invalid = [_invalid_ref(section, ref, located) for section, ref, located in refs if located.stale]
    if missing_sections or missing_fields or invalid:
        raise FinalizeRefused(
            _refusal_message(missing_sections, missing_fields, invalid),
            at=pack.id if pack.revision > 1 else None,  # a new pack has an id when it is stored
            hint="fix the problems that are named, or write it as a draft",
            details={
                "missing_sections": missing_sections,
                "missing_fields": missing_fields,
                "invalid_refs": invalid,
            },
        )
    return tuple(
        MovedRef(
            section_key=section.key,
            ref_key=ref.key,
            path=ref.path,
            was=ref.lines,
            now=located.lines,
            now_path=located.path or UNSET,
        )
        for section, ref, located in refs
        if located.state == "moved" and located.lines
    )


def _missing_fields(sections: dict[str, Section], pack: HandoffPack) -> Iterator[str]:
    for key in _SUBSTANTIAL:
        section = sections.get(key)
        if section and not ((section.description or "").strip() or section.refs or section.diagrams):
            yield f"{key}.content"
    if "qa" in sections and verdict(pack) is None:
        yield "qa.verdict"


def _invalid_ref(section: Section, ref: Ref, located: LocatedRef) -> dict[str, object]:
    return {
        "section_key": section.key,
        "ref_key": ref.key,
        "path": ref.path,
        "line_start": ref.lines.start,
        "line_end": ref.lines.end,
        "reason": located.why,
        "state": located.state,
    }


def _refusal_message(sections: list[str], fields: list[str], invalid: list[dict[str, object]]) -> str:
    parts = [f"missing sections: {', '.join(sections)}"] if sections else []
    parts += [f"missing fields: {', '.join(fields)}"] if fields else []
    if invalid:
        sample = [f"{ref['section_key']}/{ref['ref_key']} ({ref['reason']})" for ref in invalid[:_SAMPLED]]
        more = f", and {len(invalid) - _SAMPLED} more" if len(invalid) > _SAMPLED else ""
        parts.append(f"invalid refs: {', '.join(sample)}{more}")
    return "finalize validation failed: " + "; ".join(parts)


# --- refs without an anchor -------------------------------------------------------------------------------------------


class UnanchoredRef(Value, frozen=True):
    """A ref whose lines did not exist when it was written, so that they cannot be followed."""

    section_key: str
    ref_key: str
    reason: str


def unanchored_refs(pack: HandoffPack, locate: Callable[[Ref], LocatedRef]) -> tuple[UnanchoredRef, ...]:
    """The refs without an anchor, in their order, and why.

    A draft may refer to code that is not written yet.
    """
    return tuple(
        UnanchoredRef(section_key=section.key, ref_key=ref.key, reason=locate(ref).why)
        for section in pack.sections
        for ref in section.refs
        if ref.anchor is None
    )
