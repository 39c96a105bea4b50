"""The finalize checklist: what a pack must hold before it may be called finalized. All that is missing is told.

The verdict of a pack: a field of its qa section, not the mere word, and not in code, comments or struck out.

The refs of a new revision that hold on to nothing: a draft may speak of code that is not there yet.
"""

import re
from collections.abc import Callable, Iterator

from contextplane.handoff.errors import FinalizeRefused
from contextplane.handoff.markdown import one_line, shortened
from contextplane.handoff.source import Looked
from contextplane.model.handoff import HandoffPack, Lines, Ref, Section
from contextplane.model.value import Value

__all__ = ["MovedRef", "UnanchoredRef", "checked", "unanchored", "verdict"]

_LONGEST_HEADING = 120
_BELOW = 10
"""A verdict stands less than so many lines below its heading."""
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
# Where a verdict will stand, and none stands yet.
_OPEN = (
    r"(?i)(?:none|no verdict|not)(?:[ \t]+(?:yet|so far|available|decided|given|set|known)\b.*)?|n/?a|open|to follow|"
    r"(?:tbd|todo|pending|to be (?:done|decided|determined|defined))\b.*|<[^>]*>|[-.?_\u2013\u2014\u2026]*"
)
_DENIED = frozenset({"no", "not", "without", "missing", "any"})


def verdict(pack: HandoffPack) -> str | None:
    """What the qa section gives as its verdict, on one line; None when it gives none, or one that is still open.

    Of several that differ none is hidden: they are all given, in their order.
    """
    found = {
        verdict.casefold(): verdict
        for section in pack.sections
        if section.key == "qa"
        for verdict in _verdicts(section)
    }
    return shortened(" / ".join(found.values())) or None


def _verdicts(section: Section) -> Iterator[str]:
    titled = [(section.title, section.description)]
    titled += [(ref.title or "", ref.why) for ref in section.refs]
    titled += [(diagram.title, diagram.why) for diagram in section.diagrams]
    for title, body in titled:
        # A title stands over its text as a heading does.
        lines = [_unstruck(one_line(title)), *_said(body or "")]
        for at, line in enumerate(lines):
            value = _value(line, lines[at + 1 : at + _BELOW]) if "verdict" in line.casefold() else ""
            if not re.fullmatch(_OPEN, value):
                yield value


def _said(text: str) -> list[str]:
    """The lines of a text without code fences, comments and what was struck out."""
    lines = "\n".join(_unfenced(text)) if "```" in text or "~~~" in text else text
    return [_unstruck(line) for line in _uncommented(lines).splitlines()]


def _unfenced(text: str) -> Iterator[str]:
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


def _uncommented(text: str) -> str:
    """Without its comments. One that is never closed hides the rest when it begins a line, and else is none."""
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        end = text.find("-->", start)
        if end < 0:
            begins = not text[text.rfind("\n", 0, start) + 1 : start].strip()
            return "".join(kept) + text[at : start if begins else None]
        kept.append(text[at:start])
        at = end + len("-->")
    return "".join(kept) + text[at:]


def _unstruck(line: str) -> str:
    return re.sub(_STRUCK, "", line) if "~~" in line else line


def _value(line: str, below: list[str]) -> str:
    """What a line says the verdict is, `""` when it says nothing of it."""
    if len(line) <= _LONGEST_HEADING and re.fullmatch(_HEADING, line.strip()):
        first = next((text.strip() for text in below if text.strip()), "#")
        return "" if first.startswith("#") else _plain(re.sub(_LIST_MARK, "", first, count=1))
    dashed = re.match(_DASHED, line.strip())
    if dashed:
        return _plain(dashed["value"])
    match = re.search(_FIELD, line)
    if match is None or (match["before"] or "").strip().casefold() in _DENIED:
        return ""
    heads_a_table = line.lstrip().startswith("|") and below and _TABLE_RULE.issuperset(below[0])
    return "" if heads_a_table else _plain(match["value"])


def _plain(value: str) -> str:
    """Without the marks of emphasis, quotation, tables and JSON around it."""
    return shortened(value.replace("**", "").strip(_MARKS + "|,{}"))


_REQUIRED = ("scope", "findings", "qa")
_SUBSTANTIAL = ("scope", "findings")
_SAMPLED = 10


class MovedRef(Value, frozen=True):
    """A ref whose lines stand elsewhere in their file now."""

    section_key: str
    ref_key: str
    path: str
    was: Lines
    now: Lines


def checked(pack: HandoffPack, look: Callable[[Ref], Looked]) -> tuple[MovedRef, ...]:
    """Return the refs that moved, which is no fault; `FinalizeRefused` with all that is missing or stale."""
    sections = {section.key: section for section in pack.sections}
    missing_sections = [key for key in _REQUIRED if key not in sections]
    missing_fields = list(_missing_fields(sections, pack))
    looked = [(section, ref, look(ref)) for section in pack.sections for ref in section.refs]
    invalid = [_invalid(section, ref, seen) for section, ref, seen in looked if seen.stale]
    if missing_sections or missing_fields or invalid:
        raise FinalizeRefused(
            _message(missing_sections, missing_fields, invalid),
            at=pack.id if pack.revision > 1 else None,  # a new pack has an id when it is stored
            hint="mend what is named, or write it as a draft",
            details={
                "missing_sections": missing_sections,
                "missing_fields": missing_fields,
                "invalid_refs": invalid,
            },
        )
    return tuple(
        MovedRef(section_key=section.key, ref_key=ref.key, path=ref.path, was=ref.lines, now=seen.lines)
        for section, ref, seen in looked
        if seen.state == "moved" and seen.lines
    )


def _missing_fields(sections: dict[str, Section], pack: HandoffPack) -> Iterator[str]:
    for key in _SUBSTANTIAL:
        section = sections.get(key)
        if section and not ((section.description or "").strip() or section.refs or section.diagrams):
            yield f"{key}.content"
    if "qa" in sections and verdict(pack) is None:
        yield "qa.verdict"


def _invalid(section: Section, ref: Ref, seen: Looked) -> dict[str, object]:
    return {
        "section_key": section.key,
        "ref_key": ref.key,
        "path": ref.path,
        "line_start": ref.lines.start,
        "line_end": ref.lines.end,
        "reason": seen.why,
        "state": seen.state,
    }


def _message(sections: list[str], fields: list[str], invalid: list[dict[str, object]]) -> str:
    parts = [f"missing sections: {', '.join(sections)}"] if sections else []
    parts += [f"missing fields: {', '.join(fields)}"] if fields else []
    if invalid:
        told = [f"{one['section_key']}/{one['ref_key']} ({one['reason']})" for one in invalid[:_SAMPLED]]
        more = f", and {len(invalid) - _SAMPLED} more" if len(invalid) > _SAMPLED else ""
        parts.append(f"invalid refs: {', '.join(told)}{more}")
    return "finalize validation failed: " + "; ".join(parts)


class UnanchoredRef(Value, frozen=True):
    """A ref whose lines were not there when it was written, so that nobody can follow them."""

    section_key: str
    ref_key: str
    reason: str


def unanchored(pack: HandoffPack, look: Callable[[Ref], Looked]) -> tuple[UnanchoredRef, ...]:
    """Which refs have no anchor, in their order, and why."""
    return tuple(
        UnanchoredRef(section_key=section.key, ref_key=ref.key, reason=look(ref).why)
        for section in pack.sections
        for ref in section.refs
        if ref.anchor is None
    )
