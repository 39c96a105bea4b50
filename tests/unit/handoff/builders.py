"""Packs, refs and files for the tests of handoff packs."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from contextplane.handoff.anchors import make_anchor
from contextplane.handoff.page import PageQuery
from contextplane.handoff.page_token import issue
from contextplane.handoff.render import RenderedPage, render_page
from contextplane.handoff.source import LocatedRef, SourceReader
from contextplane.model.handoff import Diagram, HandoffPack, LineRange, Ref, Section, Status
from contextplane.model.timestamp import Timestamp
from contextplane.ports.objects import SourceUnreadable

__all__ = ["KEY", "NOW", "FixedSources", "a_diagram", "a_pack", "a_ref", "a_section", "as_it_was", "legend", "page"]

NOW = Timestamp.parse("2026-05-04T09:00:00Z")
KEY = b"k" * 32


class FixedSources:
    """Files that are held in memory. It counts how often each was asked for."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self.requests: list[str] = []

    def chunks(self, path: str) -> Iterator[bytes]:
        self.requests.append(path)
        if path not in self._files:
            raise SourceUnreadable("cannot be read", at=path) from FileNotFoundError(path)
        data = self._files[path]
        for at in range(0, len(data), 7):  # pieces that cut characters and line ends in two
            yield data[at : at + 7]


def a_ref(  # noqa: PLR0913  as many as a ref has fields
    key: str = "ref",
    *,
    path: str = "src/code.py",
    start: int = 1,
    end: int = 1,
    lines: Sequence[str] | None = None,
    title: str | None = None,
    why: str | None = None,
    group: str | None = None,
) -> Ref:
    """A ref, anchored to its lines when they are given."""
    span = LineRange(start=start, end=end)
    anchor = make_anchor(lines, span) if lines is not None else None
    return Ref(key=key, path=path, lines=span, title=title, why=why, group=group, anchor=anchor)


def a_diagram(key: str = "flow", *, title: str = "Flow", mermaid: str = "graph TD\n  a-->b", why: str = "") -> Diagram:
    return Diagram(key=key, title=title, mermaid=mermaid, why=why or None)


def a_section(
    key: str = "findings",
    description: str | None = None,
    *,
    title: str | None = None,
    refs: Sequence[Ref] = (),
    diagrams: Sequence[Diagram] = (),
) -> Section:
    heading = key.title() if title is None else title
    return Section(key=key, title=heading, description=description, refs=tuple(refs), diagrams=tuple(diagrams))


def a_pack(  # noqa: PLR0913  as many as a pack has fields
    *sections: Section,
    title: str | None = "Refund flow",
    name: str | None = None,
    brief: str | None = None,
    tags: Sequence[str] = (),
    status: Status = "draft",
    revision: int = 3,
    expires_at: str = "2026-05-05T09:00:00Z",
) -> HandoffPack:
    return HandoffPack(
        id="pk_abcd2345",
        name=name,
        title=title,
        brief=brief,
        status=status,
        tags=tuple(tags),
        sections=sections,
        revision=revision,
        created_at="2026-05-04T08:00:00Z",
        updated_at="2026-05-04T08:30:00Z",
        expires_at=expires_at,
    )


def as_it_was(ref: Ref) -> LocatedRef:
    """Finds every ref at its place."""
    code = tuple(f"line {number}" for number in range(ref.lines.start, ref.lines.end + 1))
    return LocatedRef(state="current", lines=ref.lines, code=code)


def page(
    pack: HandoffPack,
    query: PageQuery | None = None,
    *,
    locate: Callable[[Ref], LocatedRef] | SourceReader = as_it_was,
    now: Timestamp = NOW,
) -> RenderedPage:
    requested = query or PageQuery()
    return render_page(
        pack,
        requested,
        now=now,
        selected_by="exact_id",
        locate=locate.locate if isinstance(locate, SourceReader) else locate,
        token=lambda at: issue(KEY, requested, pack_id=pack.id, revision=pack.revision, next_offset=at),
    )


def legend(text: str) -> dict[str, str]:
    """The fields of a LEGEND, read as a client reads them: line by line, up to the first [CONTENT]."""
    head, _, _ = text.partition("\n[CONTENT]\n")
    lines = head.splitlines()
    assert lines[0] == "[LEGEND]"
    assert lines[1].startswith("# Context pack: ")
    assert lines[2] == ""
    fields = [line.removeprefix("- ").partition(": ") for line in lines[3:] if line]
    assert all(line.startswith("- ") and ": " in line for line in lines[3:] if line)
    assert len({name for name, _, _ in fields}) == len(fields)
    return {"title": lines[1].removeprefix("# Context pack: ")} | {name: value for name, _, value in fields}
