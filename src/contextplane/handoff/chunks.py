"""The pieces that a page is made of: refs and diagrams, and the text of sections that have neither."""

from typing import Literal

from contextplane.handoff.code import Looked
from contextplane.handoff.texts import block, code_block, fenced, one_line
from contextplane.model.canonical import Json
from contextplane.model.handoff import Diagram, HandoffPack, Lines, Ref, Section
from contextplane.model.value import Value

__all__ = ["Chunk", "chunks", "described", "heading", "rendered_chunk", "said_anyway", "section_head"]

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
    """One piece of a section: a ref in its group, a diagram, or (neither) the section's own text."""

    section: Section
    group: str = ""
    ref: Ref | None = None
    diagram: Diagram | None = None

    @property
    def kind(self) -> Literal["text", "ref", "diagram"]:
        return "ref" if self.ref else "diagram" if self.diagram else "text"


def chunks(pack: HandoffPack) -> tuple[Chunk, ...]:
    """Every piece of a pack, in document order; within a section groups by name, then diagrams."""
    return tuple(chunk for section in pack.sections for chunk in _of_section(section))


def _of_section(section: Section) -> list[Chunk]:
    refs = sorted(((ref.group or _UNGROUPED, ref) for ref in section.refs), key=lambda grouped: grouped[0])
    found = [Chunk(section=section, group=group, ref=ref) for group, ref in refs]
    found += [Chunk(section=section, diagram=diagram) for diagram in section.diagrams]
    return found or [Chunk(section=section)]


def section_head(section: Section) -> str:
    """What stands over the first chunk of a section on a page."""
    description = block(section.description or "")
    return f"\n## {one_line(section.title)} [{one_line(section.key)}]\n" + (f"\n{description}\n" if description else "")


def heading(chunk: Chunk) -> str:
    """What stands over the first chunk of a group, or over the first diagram."""
    if chunk.ref:
        return f"\n### group: {one_line(chunk.group)}\n"
    return "\n### Diagrams\n" if chunk.diagram else ""


def rendered_chunk(chunk: Chunk, looked: Looked | None, *, compact: bool) -> str:
    """The chunk as the page shows it, below its headings. `looked` is what was found of a ref."""
    if chunk.ref and looked:
        head, tail = _of_ref(chunk, chunk.ref)
        now = f" ({looked.state}: now {_range(looked.lines)})" if looked.lines and _is_elsewhere(looked) else ""
        stale = f"\n> stale ref: {one_line(looked.why)}\n" if looked.stale else ""
        first = looked.lines.start if looked.lines else 1
        code = "" if compact or not looked.code else f"\n{code_block(looked.code, first, _language(chunk.ref))}\n"
        return f"{head}{now}\n{tail}{stale}{code}"
    return _of_diagram(chunk.diagram) if chunk.diagram else ""


def said_anyway(chunk: Chunk) -> tuple[str, ...]:
    """What the chunk says below its section's head wherever its lines are now, in parts, from the top."""
    if chunk.ref is None:
        return (heading(chunk) + rendered_chunk(chunk, None, compact=True),)
    head, tail = _of_ref(chunk, chunk.ref)
    return heading(chunk) + head, tail


def described(chunk: Chunk, looked: Looked | None) -> dict[str, Json]:
    """The chunk for machines."""
    said: dict[str, Json] = {"section_key": chunk.section.key, "kind": chunk.kind, "key": chunk.section.key}
    said |= {"section_title": _cut(chunk.section.title)}
    if chunk.diagram:
        said |= {"key": chunk.diagram.key, "title": chunk.diagram.title, "why": chunk.diagram.why}
    if chunk.ref and looked:
        ref = chunk.ref
        said |= {"key": ref.key, "title": ref.title, "why": ref.why, "group": chunk.group, "path": ref.path}
        said |= {"lines": _numbers(ref.lines), "state": looked.state, "stale": looked.stale}
        said |= {"now_lines": _numbers(looked.lines) if looked.lines else None, "reason": looked.why or None}
    return said


def _cut(title: str) -> str:
    """A section's title as each of its chunks repeats it: however long it is, the answer stays in proportion."""
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "\u2026"


def _of_ref(chunk: Chunk, ref: Ref) -> tuple[str, str]:
    """What is said of a ref before and after what has become of its lines."""
    title, why = one_line(ref.title or ""), one_line(ref.why or "")
    return (
        f"\n#### {one_line(ref.key)} [{one_line(chunk.section.key)}]\n"
        + (f"**{title}**\n\n" if title else "")
        + f"- path: {one_line(ref.path)}\n- lines: {_range(ref.lines)}",
        f"- why: {why}\n" if why else "",
    )


def _of_diagram(diagram: Diagram) -> str:
    why = one_line(diagram.why or "")
    drawing = fenced(diagram.mermaid, "mermaid")
    return f"\n#### {one_line(diagram.title)}\n" + (f"_{why}_\n\n" if why else "") + f"{drawing}\n"


def _is_elsewhere(looked: Looked) -> bool:
    return looked.state in ("moved", "changed")


def _range(lines: Lines) -> str:
    return f"{lines.start}-{lines.end}"


def _numbers(lines: Lines) -> dict[str, Json]:
    return {"start": lines.start, "end": lines.end}


def _language(ref: Ref) -> str:
    return _LANGUAGES.get(ref.path.rpartition(".")[2], "")
