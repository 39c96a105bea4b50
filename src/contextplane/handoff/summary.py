"""Risks and gaps that a pack names: under a heading such as Risks, or after a marker such as `TODO`.

A word in the middle of a sentence is no signal, and neither is "no known risks".
"""

import re
from collections.abc import Iterator
from typing import Literal

from contextplane.handoff.markdown import shorten
from contextplane.model.handoff import HandoffPack, Section
from contextplane.model.value import Value

__all__ = ["Signals", "signals"]

Kind = Literal["risk", "gap"]

_NEITHER: frozenset[Kind] = frozenset()
# Patterns are texts, and compiled when they are first used: most packs need few of them.
_RISK = r"risks?|blockers?|criticals?|incidents?|warnings?"
_GAP = r"gaps?|missing|unknowns?|to-?dos?|tbd|fixmes?|follow[- ]?ups?|(?:open|unanswered) (?:questions?|points?)"
_BESIDE = (
    r"known|open|top|main|key|major|minor|high|medium|low|remaining|residual|possible|potential|outstanding|current|"
    r"identified|other|further|explicit|real|the|any|of|and|or|list|items?|issues?|mitigations?"
)
# A heading, a group or a key that consists of such names, and of no word that gives them another meaning.
_NAME = rf"(?:(?:{_RISK}|{_GAP}|{_BESIDE})(?: |$))+"
_NAMED: dict[Kind, str] = {"risk": rf"\b(?:{_RISK})\b", "gap": rf"\b(?:{_GAP})\b"}
_MARKER = (
    rf"(?i:\[?(?:(?:{_BESIDE}) )?(?:(?P<risk>{_RISK})|(?P<gap>{_GAP}))\b\]?(?: ?\([^)]{{0,40}}\))?"
    r"(?: ?:|(?<=\])| [-\u2013\u2014](?= )))(?P<rest>.*)"
    r"|(?P<loud>(?:TODO|FIXME|TBD)\b|(?i:tbd)(?=[. ]*$))(?P<after>.*)"
)
# A text without one of these has no signal. Most texts have none, and are not parsed.
_HINT = re.compile(r"(?i)risk|block|critic|incid|warn|gap|miss|unkn|to-?do|tbd|fix|follow|question|point")
_NOTHING = (
    r"(?i)[-\u2013\u2014 ]*(?:(?:none|nothing|nil|n/?a|not applicable|"
    rf"no (?:(?:{_BESIDE}) )*(?:{_RISK}|{_GAP}|issues?))"
    r"(?: (?:known|identified|found|noted|remaining|left|open|yet|so far|were|was|are|is|at this (?:time|point)|here))*"
    r"[.! ]*)?"
)
_LEAD = r"[ \t>]*(?:(?P<heading>#{1,6})[ \t]+|(?P<item>[-*+\u2022]|\d+[.)])[ \t]+)?(?:\[[ xX]?\][ \t]+)?"
_ENOUGH = 300
"""No more of an entry than this is read: far less of it is shown."""
_EMPHASIS = re.compile(r"\*\*|__|`")


class _Entry(Value, frozen=True):
    """One entry of a text: a heading, an item of a list, or a paragraph."""

    text: str
    heading: bool = False
    item: bool = False


class Signals(Value, frozen=True):
    """The risks of a pack, and its gaps (missing, unknown, to do): each once, on one line, in order."""

    risks: tuple[str, ...]
    gaps: tuple[str, ...]


def signals(pack: HandoffPack) -> Signals:
    lines: dict[Kind, dict[str, str]] = {"risk": {}, "gap": {}}
    for kind, text in _pack_signals(pack):
        line = shorten(text)
        lines[kind].setdefault(line.casefold(), line)
    return Signals(risks=tuple(lines["risk"].values()), gaps=tuple(lines["gap"].values()))


def _pack_signals(pack: HandoffPack) -> Iterator[tuple[Kind, str]]:
    yield from _text_signals(pack.brief or "", _NEITHER)
    for section in pack.sections:
        yield from _section_signals(section)


def _section_signals(section: Section) -> Iterator[tuple[Kind, str]]:
    named = _kinds_named(section.key) | _kinds_named(section.title)
    yield from _text_signals(section.title, _NEITHER)
    yield from _text_signals(section.description or "", named)
    for ref in section.refs:
        title = ref.title or (ref.why or "").strip().partition("\n")[0] or ref.key
        yield from _text_signals(title, named | _kinds_named(ref.group or ""))
        yield from _text_signals(ref.why or "", _NEITHER)
    for diagram in section.diagrams:
        yield from _text_signals(diagram.title, named)
        yield from _text_signals(diagram.why or "", _NEITHER)


def _kinds_named(name: str) -> frozenset[Kind]:
    """The kinds of signals under a heading, a group or a key of that name."""
    if not _HINT.search(name):
        return _NEITHER
    plain = " ".join(re.sub(r"[^a-z0-9]+", " ", name.casefold()).split())
    if not re.fullmatch(_NAME, plain):
        return _NEITHER
    return frozenset(kind for kind, names in _NAMED.items() if re.search(names, plain))


def _text_signals(text: str, named: frozenset[Kind]) -> Iterator[tuple[Kind, str]]:
    """The entries of a text that are signals. `named`: the kinds that the heading of the text names."""
    if not named and not _HINT.search(text):
        return
    under = caption = _NEITHER
    for entry in _entries(text):
        marked = re.fullmatch(_MARKER, entry.text)
        caption = caption if entry.item else _NEITHER
        if marked:
            kind: Kind = "risk" if marked["risk"] else "gap"
            if marked["loud"] or not re.fullmatch(_NOTHING, marked["rest"]):
                yield kind, entry.text
            elif not marked["rest"].strip():
                caption = frozenset({kind})
        elif entry.heading:
            under = _kinds_named(entry.text)
        elif not re.fullmatch(_NOTHING, entry.text):
            yield from ((kind, entry.text) for kind in sorted(named | under | caption))


def _entries(text: str) -> Iterator[_Entry]:
    """The entries of a text, without code fences."""
    entry: _Entry | None = None
    fenced = False
    for line in text.splitlines():
        lead = re.match(_LEAD, line)
        content = _EMPHASIS.sub("", line[lead.end() if lead else 0 :]).strip("*_ \t")
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced = fenced != fence
        starts = lead is not None and (lead["heading"] or lead["item"])
        if entry and (fence or fenced or not content or starts or entry.heading or re.match(_MARKER, content)):
            yield entry
            entry = None
        if content and not fence and not fenced:
            if entry and len(entry.text) <= _ENOUGH:
                entry = _Entry(text=f"{entry.text} {content}", item=entry.item)
            elif not entry:
                entry = _Entry(text=content, heading=bool(lead and lead["heading"]), item=bool(lead and lead["item"]))
    if entry:
        yield entry
