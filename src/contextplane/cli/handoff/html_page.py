"""`ctx handoff show --html`: a page for a browser, with the code, and with links into it.

Every text of the pack is escaped. The page has no script, and its policy forbids the browser to run or load anything.
"""

import os
from collections.abc import Callable, Iterator
from html import escape
from urllib.parse import quote

from msgspec import UNSET

from contextplane.app.handoff.revisions import HandoffSummary, LocatedRef, verdict
from contextplane.cli.output import clean, clean_lines, clean_tabbed
from contextplane.model.handoff import Diagram, HandoffPack, Ref, Section

__all__ = ["html_page"]

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .8rem; border: 1px solid #8886; border-radius: .3rem; font-size: .85rem; }
.text { white-space: pre-wrap; border: 0; padding: 0; font: inherit; overflow-wrap: anywhere; }
.ref { border-left: .2rem solid #8888; padding-left: 1rem; margin: 1.5rem 0; }
.moved { color: #a60; } .changed, .gone, .unreadable, .expired { color: #c22; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def html_page(summary: HandoffSummary, locate: Callable[[Ref], LocatedRef], source_root: str) -> str:
    """Return the page of a revision. `source_root`: the folder that its refs point into."""
    pack = summary.selected.pack
    title = _line(pack.heading)
    sections = (_section(section, locate, source_root) for section in pack.sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{title}</h1>\n<dl>\n{''.join(_facts(summary))}</dl>\n</header>\n"
        f"<nav><ul>\n{''.join(_contents(pack))}</ul></nav>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _line(text: str) -> str:
    """Return a text as one line of HTML. Characters that control or reorder text are shown escaped."""
    return escape(clean(text))


def _facts(summary: HandoffSummary) -> Iterator[str]:
    pack, fresh = summary.selected.pack, summary.fresh
    facts = {
        "Handoff": f"{pack.id}@{pack.revision}",
        "Name": pack.name or "",
        "Brief": pack.brief or "",
        "Tags": ", ".join(pack.tags),
        "Status": pack.status,
        "Verdict": verdict(pack) or "none",
        "Updated": pack.updated_at,
        "Expires": f"{pack.expires_at} ({fresh.state})",
    }
    if pack.provenance is not UNSET:
        facts |= {"Author": pack.provenance.author_text, "Commit": pack.provenance.commit_text}
    facts["Digest"] = str(summary.selected.digest)
    return (f"<dt>{name}</dt><dd>{_line(value)}</dd>\n" for name, value in facts.items() if value)


def _contents(pack: HandoffPack) -> Iterator[str]:
    for section in pack.sections:
        yield f'<li><a href="#{quote(section.key)}">{_line(section.title)}</a></li>\n'


def _section(section: Section, locate: Callable[[Ref], LocatedRef], source_root: str) -> str:
    text = f'<p class="text">{escape(clean_lines(section.description))}</p>\n' if section.description else ""
    refs = "".join(_ref(section, ref, locate(ref), source_root) for ref in section.refs)
    diagrams = "".join(_diagram(diagram) for diagram in section.diagrams)
    head = f'<section id="{escape(section.key)}">\n<h2>{_line(section.title)}</h2>\n'
    return f"{head}{text}{refs}{diagrams}</section>\n"


def _ref(section: Section, ref: Ref, located: LocatedRef, source_root: str) -> str:
    place = f"{ref.path}:{ref.lines.start}-{ref.lines.end}"
    target = _target(ref, located, source_root)
    link = f'<a href="{escape(target)}">{_line(place)}</a>' if target else _line(place)
    why = f"<p>{_line(ref.why)}</p>\n" if ref.why else ""
    return (
        f'<article class="ref" id="{escape(section.key)}--{escape(ref.key)}">\n'
        f"<h3>{_line(ref.title or ref.key)}</h3>\n"
        f'<p>{link} <span class="{located.state}">{_line(_state_text(ref, located))}</span></p>\n'
        f"{why}{_code(located)}</article>\n"
    )


def _state_text(ref: Ref, located: LocatedRef) -> str:
    if located.lines is None:
        return f"{located.state}: {located.why}" if located.why else located.state
    path = f"{located.path}:" if located.path else ""
    is_elsewhere = path or located.lines != ref.lines
    return f"{located.state}, now {path}{located.lines.start}-{located.lines.end}" if is_elsewhere else located.state


def _target(ref: Ref, located: LocatedRef, source_root: str) -> str:
    """Return the address of the lines; empty for a file that cannot be read below the source root."""
    if located.state == "unreadable":
        return ""
    path = os.path.join(source_root, located.path or ref.path)
    lines = f"#L{located.lines.start}-L{located.lines.end}" if located.lines else ""
    return f"file://{quote(os.fsencode(path))}{lines}"


def _code(located: LocatedRef) -> str:
    if located.lines is None or not located.code:
        return ""
    width = len(str(located.lines.end))
    numbered = enumerate(located.code, located.lines.start)
    lines = (f"{number:>{width}}  {escape(clean_tabbed(line))}" for number, line in numbered)
    return f"<pre><code>{chr(10).join(lines)}</code></pre>\n"


def _diagram(diagram: Diagram) -> str:
    why = f"<p>{_line(diagram.why)}</p>\n" if diagram.why else ""
    drawing = escape(clean_lines(diagram.mermaid))
    return f"<h3>{_line(diagram.title)}</h3>\n{why}<pre>{drawing}</pre>\n"
