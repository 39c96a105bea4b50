"""Renders one page of a pack as markdown and as data: the LEGEND, the summary, and some chunks.

A chunk is a ref, a diagram, or the text of a section that has neither. Risks, stale refs and the verdict are those of
the whole pack on every page. It reads no file and no clock: the caller hands in `locate`, which is called once for each
ref.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import UNSET, to_builtins

from contextplane.handoff.finalize import verdict
from contextplane.handoff.freshness import PackFreshness, freshness
from contextplane.handoff.markdown import block, code_block, fenced_block, one_line
from contextplane.handoff.page import PageQuery
from contextplane.handoff.source import LocatedRef
from contextplane.handoff.summary import signals
from contextplane.model.handoff import Diagram, HandoffPack, HandoffProvenance, LineRange, Ref, Section
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = [
    "Chunk",
    "ChunkSearch",
    "RenderedPage",
    "chunk_data",
    "chunks",
    "fixed_text",
    "group_heading",
    "render_chunk",
    "render_page",
    "section_head",
]

# --- chunks -----------------------------------------------------------------------------------------------------------

_UNGROUPED = "ungrouped"
_LONGEST_TITLE = 140
_LANGUAGES = {
    **dict.fromkeys(("ts", "tsx"), "typescript"),
    **dict.fromkeys(("js", "jsx"), "javascript"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cpp", "cc", "cxx", "hpp"), "cpp"),
    **dict.fromkeys(("sh", "bash"), "bash"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("html", "htm"), "html"),
    **{name: name for name in ("go", "java", "toml", "json", "sql", "css")},
    "rs": "rust",
    "py": "python",
    "kt": "kotlin",
    "cs": "csharp",
    "rb": "ruby",
    "md": "markdown",
    "proto": "protobuf",
}


class Chunk(Value, frozen=True):
    """One piece of a section: a ref in its group, a diagram, or, with neither, the section's own text."""

    section: Section
    group: str = ""
    ref: Ref | None = None
    diagram: Diagram | None = None

    @property
    def kind(self) -> Literal["text", "ref", "diagram"]:
        return "ref" if self.ref else "diagram" if self.diagram else "text"


def chunks(pack: HandoffPack) -> tuple[Chunk, ...]:
    """The chunks of a pack in document order; within a section groups by name, then diagrams."""
    return tuple(chunk for section in pack.sections for chunk in _section_chunks(section))


def _section_chunks(section: Section) -> list[Chunk]:
    refs = sorted(((ref.group or _UNGROUPED, ref) for ref in section.refs), key=lambda grouped: grouped[0])
    chunks = [Chunk(section=section, group=group, ref=ref) for group, ref in refs]
    chunks += [Chunk(section=section, diagram=diagram) for diagram in section.diagrams]
    return chunks or [Chunk(section=section)]


def section_head(section: Section) -> str:
    """The heading and description above the first chunk of a section on a page."""
    description = block(section.description or "")
    return f"\n## {one_line(section.title)} [{one_line(section.key)}]\n" + (f"\n{description}\n" if description else "")


def group_heading(chunk: Chunk) -> str:
    """The heading above the first chunk of a group, or above the first diagram."""
    if chunk.ref:
        return f"\n### group: {one_line(chunk.group)}\n"
    return "\n### Diagrams\n" if chunk.diagram else ""


def render_chunk(chunk: Chunk, located: LocatedRef | None, *, compact: bool) -> str:
    """Render a chunk as the page shows it, below its headings. `located`: the lines of its ref."""
    if chunk.ref and located:
        head, tail = _ref_text(chunk, chunk.ref)
        now = f" ({located.state}: now {_place(located)})" if located.lines and _is_elsewhere(located) else ""
        stale = f"\n> stale ref: {one_line(located.why)}\n" if located.stale else ""
        first = located.lines.start if located.lines else 1
        code = (
            ""
            if compact or not located.code
            else f"\n{code_block(located.code, first, _language(located.path or chunk.ref.path))}\n"
        )
        return f"{head}{now}\n{tail}{stale}{code}"
    return _diagram_text(chunk.diagram) if chunk.diagram else ""


def fixed_text(chunk: Chunk) -> tuple[str, ...]:
    """The parts of a rendered chunk that do not depend on where its lines are now, from the top."""
    if chunk.ref is None:
        return (group_heading(chunk) + render_chunk(chunk, None, compact=True),)
    head, tail = _ref_text(chunk, chunk.ref)
    return group_heading(chunk) + head, tail


def chunk_data(chunk: Chunk, located: LocatedRef | None) -> dict[str, Json]:
    """The chunk as structured data."""
    data: dict[str, Json] = {"section_key": chunk.section.key, "kind": chunk.kind, "key": chunk.section.key}
    data |= {"section_title": _cut_title(chunk.section.title)}
    if chunk.diagram:
        data |= {"key": chunk.diagram.key, "title": chunk.diagram.title, "why": chunk.diagram.why}
    if chunk.ref and located:
        ref = chunk.ref
        data |= {"key": ref.key, "title": ref.title, "why": ref.why, "group": chunk.group, "path": ref.path}
        data |= {"lines": _range_data(ref.lines), "state": located.state, "stale": located.stale}
        data |= {"now_lines": _range_data(located.lines) if located.lines else None, "reason": located.why or None}
        data |= {"now_path": located.path} if located.path else {}
    return data


def _cut_title(title: str) -> str:
    """A section's title, cut to a length: each of its chunks repeats it."""
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "\u2026"


def _ref_text(chunk: Chunk, ref: Ref) -> tuple[str, str]:
    """The text of a ref before and after the state of its lines."""
    title, why = one_line(ref.title or ""), one_line(ref.why or "")
    return (
        f"\n#### {one_line(ref.key)} [{one_line(chunk.section.key)}]\n"
        + (f"**{title}**\n\n" if title else "")
        + f"- path: {one_line(ref.path)}\n- lines: {_range(ref.lines)}",
        f"- why: {why}\n" if why else "",
    )


def _diagram_text(diagram: Diagram) -> str:
    why = one_line(diagram.why or "")
    drawing = fenced_block(diagram.mermaid, "mermaid")
    return f"\n#### {one_line(diagram.title)}\n" + (f"_{why}_\n\n" if why else "") + f"{drawing}\n"


def _is_elsewhere(located: LocatedRef) -> bool:
    return located.state in ("moved", "changed")


def _place(located: LocatedRef) -> str:
    """The lines where they are now, with the path if that is another one."""
    lines = _range(located.lines) if located.lines else ""
    return f"{one_line(located.path)} {lines}" if located.path else lines


def _range(lines: LineRange) -> str:
    return f"{lines.start}-{lines.end}"


def _range_data(lines: LineRange) -> dict[str, Json]:
    return {"start": lines.start, "end": lines.end}


def _language(path: str) -> str:
    return _LANGUAGES.get(path.rpartition(".")[2], "")


# --- search -----------------------------------------------------------------------------------------------------------


class ChunkSearch:
    """Searches the chunks of one pack for a text, ignoring case, each as a reviewer's page shows it.

    So every profile finds the same. Code is also searched without its line numbers. The head of a section is rendered
    once for all its chunks.
    """

    def __init__(self, contains: str) -> None:
        self._needle = contains.casefold()
        self._heads: dict[str, str] = {}

    def matches(self, chunk: Chunk, located: LocatedRef | None) -> bool:
        """Whether the chunk contains the text. `located`: the lines of its ref."""
        head = self._head(chunk.section)
        if self._needle in head:
            return True
        edge = head[-len(self._needle) :]  # the text may begin in the head and end below
        first, *others = (part.casefold() for part in fixed_text(chunk))
        if self._needle in edge + first or any(self._needle in other for other in others):
            return True
        if located is None:
            return False
        rendered = group_heading(chunk) + render_chunk(chunk, located, compact=False)
        return self._needle in edge + rendered.casefold() or self._needle in "\n".join(located.code).casefold()

    def _head(self, section: Section) -> str:
        if section.key not in self._heads:
            self._heads[section.key] = section_head(section).casefold()
        return self._heads[section.key]


# --- pages ------------------------------------------------------------------------------------------------------------

Locate = Callable[[Ref], LocatedRef]

_SIGNALS = 3
_HINTS = 5
_PARTIAL = ("compact page is partial; continue via LEGEND next_page_token",)


class RenderedPage(Value, frozen=True):
    """A page as markdown, and the same as structured data."""

    text: str
    structured: dict[str, Json]


class _Page(Value, frozen=True):
    """The chunks of a page with the lines of their refs, and its place among all that match.

    `stale`: the keys of the stale refs of the whole pack.
    """

    shown: tuple[tuple[Chunk, LocatedRef | None], ...]
    stale: tuple[str, ...]
    offset: int
    total: int
    token: str | None


class _Facts(Value, frozen=True):
    """What a page shows of the pack beside its chunks."""

    fresh: PackFreshness
    selected_by: str
    verdict: str | None
    risks: list[str]
    gaps: list[str]


def render_page(  # noqa: PLR0913  all that a page depends on is handed in
    pack: HandoffPack,
    query: PageQuery,
    *,
    now: Timestamp,
    selected_by: str,
    locate: Locate,
    token: Callable[[int], str],
) -> RenderedPage:
    """Render the requested page of a pack. `token` issues the page token that continues at an offset."""
    page = _page(pack, query, locate=locate, token=token)
    fresh = freshness(pack.expires, now)
    pack_signals = signals(pack)
    most = _SIGNALS if query.compact else None
    facts = _Facts(
        fresh=fresh,
        selected_by=selected_by,
        verdict=verdict(pack),
        risks=[*_state_risks(page.stale, fresh), *pack_signals.risks][:most],
        gaps=[*pack_signals.gaps, *(_PARTIAL if query.compact and page.token else ())][:most],
    )
    legend = "".join(f"- {name}: {value}\n" for name, value in _legend(pack, query, page, facts))
    summary = "\n".join(_summary(pack, page, facts)) + "\n" if query.compact else ""
    content = "".join(_content(page, compact=query.compact)) or "\n_No chunks matched current filters._\n"
    return RenderedPage(
        text=f"[LEGEND]\n# Context pack: {_objective(pack)}\n\n{legend}\n[CONTENT]\n{summary}{content}",
        structured=_page_data(pack, query, page, facts),
    )


def _page(pack: HandoffPack, query: PageQuery, *, locate: Locate, token: Callable[[int], str]) -> _Page:
    located = [(chunk, locate(chunk.ref) if chunk.ref else None) for chunk in chunks(pack)]
    matching = located
    if query.contains:
        search = ChunkSearch(query.contains)
        matching = [(chunk, lines) for chunk, lines in located if search.matches(chunk, lines)]
    start = min(query.offset, len(matching))
    end = len(matching) if query.most is None else min(start + query.most, len(matching))
    return _Page(
        shown=tuple(matching[start:end]),
        stale=tuple(chunk.ref.key for chunk, lines in located if chunk.ref and lines and lines.stale),
        offset=start,
        total=len(matching),
        token=token(end) if end < len(matching) else None,
    )


def _objective(pack: HandoffPack) -> str:
    return one_line(pack.heading) or "Untitled"


def _expires(pack: HandoffPack) -> str:
    return str(pack.expires).removesuffix("Z") + "+00:00"


def _legend(pack: HandoffPack, query: PageQuery, page: _Page, facts: _Facts) -> Iterator[tuple[str, object]]:
    """The fields of the LEGEND in their order. Foreign text in a field is put on one line."""
    yield "id", one_line(pack.id)
    if pack.name:
        yield "name", one_line(pack.name)
    yield "status", pack.status
    yield "revision", pack.revision
    yield "expires_at", _expires(pack)
    yield "ttl_remaining", facts.fresh.human
    yield "freshness_state", facts.fresh.state
    if facts.fresh.warning:
        yield "warning", facts.fresh.warning
    if pack.provenance is not UNSET:
        yield from _provenance_fields(pack.provenance)
    if pack.tags:
        yield "tags", ", ".join(map(one_line, pack.tags))
    if pack.brief:
        yield "brief", one_line(pack.brief)
    yield "profile", query.profile
    if query.compact:
        yield "mode", "compact"
    if query.contains:
        yield "contains", one_line(query.contains)
    if query.paged:
        yield "paging", "active"
        yield "offset", page.offset
        yield "limit", query.most or "all"
        yield "has_more", "true" if page.token else "false"
        yield "next_page_token", page.token or "null"
        yield "chunks_total", page.total
        yield "chunks_returned", len(page.shown)
    yield "selected_by", facts.selected_by
    yield "selected_revision", pack.revision
    yield "selected_status", pack.status


def _provenance_fields(provenance: HandoffProvenance) -> Iterator[tuple[str, object]]:
    if provenance.author_text:
        yield "author", one_line(provenance.author_text)
    if provenance.commit_text:
        yield "commit", one_line(provenance.commit_text)


def _summary(pack: HandoffPack, page: _Page, facts: _Facts) -> Iterator[str]:
    fresh = facts.fresh
    yield "\n## Handoff summary [handoff]"
    yield f"- objective: {_objective(pack)}"
    yield f"- scope: {_scope(pack)}"
    # Foreign text comes last and quoted: a reader finds our status first, not one that the text names.
    yield f"- verdict_status: status={pack.status}, freshness_state={fresh.state}, verdict={_quote(facts.verdict)}"
    yield f"- freshness: expires_at={_expires(pack)}, ttl_remaining={fresh.human}"
    yield "- top_risks:"
    yield from (f"  - {risk}" for risk in facts.risks or ["none explicitly signaled"])
    yield "- top_gaps:"
    yield from (f"  - {gap}" for gap in facts.gaps or ["none explicitly tagged"])
    yield "- deep_nav_hints:"
    read = f'{{"action":"read","id":"{one_line(pack.id)}","profile":"reviewer"}}'
    yield f"  - full_evidence: output read {read}"
    if page.token:
        yield "  - continue_compact: call output read with LEGEND `next_page_token`"
    sections = [f"{one_line(section.title)}[{one_line(section.key)}]" for section in pack.sections]
    yield f"  - sections: {_first_names(sections)}"
    yield f"  - refs_on_page: {_first_names([one_line(chunk.ref.key) for chunk, _ in page.shown if chunk.ref])}"


def _quote(text: str | None) -> str:
    return "none" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _first_names(names: list[str]) -> str:
    return ", ".join(list(dict.fromkeys(names))[:_HINTS]) or "none"


def _scope(pack: HandoffPack) -> str:
    titles = [title for title in (one_line(section.title) for section in pack.sections) if title]
    scope = (
        f"sections in scope: {_first_names(titles)}" if titles else "scope is not explicitly documented in pack brief"
    )
    return one_line(pack.brief or "") or scope


def _state_risks(stale: tuple[str, ...], fresh: PackFreshness) -> Iterator[str]:
    if fresh.warning:
        yield f"freshness: {fresh.warning}"
    if stale:
        more = f" and {len(stale) - _SIGNALS} more" if len(stale) > _SIGNALS else ""
        yield f"stale refs: {', '.join(map(one_line, stale[:_SIGNALS]))}{more}"


def _content(page: _Page, *, compact: bool) -> Iterator[str]:
    """The chunks, and once on the page each section's head and each heading, before its first chunk."""
    section, over = None, ""
    for chunk, located in page.shown:
        if chunk.section is not section:
            section, over = chunk.section, ""
            yield section_head(section)
        above = group_heading(chunk)
        if above != over:
            over = above
            yield above
        yield render_chunk(chunk, located, compact=compact)


def _page_data(pack: HandoffPack, query: PageQuery, page: _Page, facts: _Facts) -> dict[str, Json]:
    provenance = {} if pack.provenance is UNSET else {"provenance": to_builtins(pack.provenance)}
    return {
        **provenance,
        "id": pack.id,
        "name": pack.name,
        "title": pack.title,
        "revision": pack.revision,
        "status": pack.status,
        "freshness_state": facts.fresh.state,
        "expires_at": pack.expires_at,
        "ttl_remaining": facts.fresh.human,
        "warning": facts.fresh.warning,
        "profile": query.profile,
        "mode": "compact" if query.compact else "full",
        "paging": {
            "offset": page.offset,
            "limit": query.most,
            "has_more": page.token is not None,
            "next_page_token": page.token,
            "chunks_total": page.total,
            "chunks_returned": len(page.shown),
        },
        "selected_by": facts.selected_by,
        "verdict": facts.verdict,
        "risks": list(facts.risks),
        "gaps": list(facts.gaps),
        "chunks": [chunk_data(chunk, located) for chunk, located in page.shown],
    }
