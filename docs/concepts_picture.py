"""Draws the picture of docs/concepts.md: the three kinds of pack and the governed run. `make docs` writes it.

Everything is placed by hand on a grid of 960 x 430 units. The colours of light and of dark mode stand in STYLE; a
reader's browser chooses between them. What is not built yet is drawn with the class `planned`: a dashed line.
"""

from dataclasses import dataclass
from html import escape
from typing import Literal

__all__ = ["draw_concepts"]

WIDTH, HEIGHT = 960, 430
LINE = 21  # from one line of text to the next

STYLE = """\
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-size: 14px;
       fill: #24292f; }
.title { font-size: 17px; font-weight: 600; }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px;
        fill: #57606a; }
.note { font-size: 13px; fill: #57606a; }
.page { fill: #ffffff; stroke: #d0d7de; }
.box { fill: #f6f8fa; stroke: #8c959f; stroke-width: 1.5; }
.contract { fill: #ddf4ff; stroke: #0969da; }
.record { fill: #dafbe1; stroke: #1a7f37; }
.findings { fill: #fff8c5; stroke: #9a6700; }
.planned { fill: none; stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 6 5; }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.5; }
.head { fill: #57606a; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .code, .note { fill: #9198a1; }
  .page { fill: #0d1117; stroke: #3d444d; }
  .box { fill: #161b22; stroke: #656c76; }
  .contract { fill: #0c2d4f; stroke: #4493f8; }
  .record { fill: #12301c; stroke: #3fb950; }
  .findings { fill: #332a10; stroke: #d29922; }
  .planned { stroke: #656c76; }
  .arrow { stroke: #9198a1; }
  .head { fill: #9198a1; }
}
"""

HEAD = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">
<!-- Made by `make docs` from docs/concepts_picture.py. Edit that. -->
<title>The three kinds of pack and the governed run</title>
<desc>
A ContextPack is compiled for an agent. What the agent did becomes an ExecutionPack. What it found out becomes a
HandoffPack, which the next agent reads. A governed run, which is not built yet, will join the three.
</desc>
<style>
{STYLE}</style>
<defs>
<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
<path class="head" d="M 0 0 L 10 5 L 0 10 z"/>
</marker>
</defs>
<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10"/>"""


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; `look` is a class of STYLE."""

    words: str
    look: Literal["", "title", "code", "note"] = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with lines of text in its middle, the first of them `top` units below its upper edge."""

    x: int
    y: int
    width: int
    height: int
    look: str
    lines: tuple[Text, ...]
    top: int = 37


BOXES = (
    Box(
        *(30, 128, 230, 174),
        "box contract",
        (
            Text("ContextPack", "title"),
            Text("the signed contract"),
            Text("what an agent may see and do", "note"),
            Text("ctxpack.support@1.0.0", "code"),
            Text(""),
            Text("new · lint · publish · pin", "code"),
        ),
    ),
    Box(
        *(350, 48, 260, 334),
        "planned",
        (
            Text("Governed run", "title"),
            Text("not built yet", "note"),
            *(Text("") for _ in range(10)),
            Text("will enforce the contract", "note"),
            Text("and record every step by itself", "note"),
        ),
    ),
    Box(
        *(385, 160, 190, 110),
        "box",
        (Text("An agent at work", "title"), Text("today: your own loop", "note"), Text("calls these commands", "note")),
        top=42,
    ),
    Box(
        *(700, 28, 230, 174),
        "box record",
        (
            Text("ExecutionPack", "title"),
            Text("the record of one run"),
            Text("what an agent did see and do", "note"),
            Text("ctx://6436244d2d19...", "code"),
            Text(""),
            Text("show · diff · replay", "code"),
        ),
    ),
    Box(
        *(700, 228, 230, 174),
        "box findings",
        (
            Text("HandoffPack", "title"),
            Text("findings passed on"),
            Text("what the next agent must know", "note"),
            Text("pk_mpizcvsq", "code"),
            Text(""),
            Text("handoff list · read · show", "code"),
        ),
    ),
)

# Each a path, the command that goes this way, and where the middle of that word stands.
ARROWS = (
    ("M 260 215 H 383", "ctx compile", (305, 206)),
    ("M 575 198 H 655 V 115 H 698", "ctx pack", (654, 105)),
    ("M 577 232 H 655 V 315 H 698", "ctx mcp", (652, 335)),
)
BOTH_WAYS = 2  # findings are read as well as written: this arrow has a head at its beginning, too


def draw_concepts() -> str:
    """The picture as SVG, the same bytes every time."""
    lines = []
    for box in BOXES:
        lines += draw_box(box)
    for number, (path, command, (x, y)) in enumerate(ARROWS):
        begin = ' marker-start="url(#head)"' if number == BOTH_WAYS else ""
        lines.append(f'<path class="arrow" d="{path}"{begin} marker-end="url(#head)"/>')
        lines.append(draw_text(Text(command, "code"), x, y))
    return "\n".join([HEAD, *lines, "</svg>"]) + "\n"


def draw_box(box: Box) -> list[str]:
    """The elements of a box: its rectangle, then its lines from top to bottom. Empty lines only take room."""
    middle = box.x + box.width // 2
    return [
        f'<rect class="{box.look}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="8"/>',
        *(
            draw_text(line, middle, box.y + box.top + number * LINE)
            for number, line in enumerate(box.lines)
            if line.words
        ),
    ]


def draw_text(line: Text, x: int, y: int) -> str:
    """A line of text whose middle is at x and whose baseline is at y."""
    look = f' class="{line.look}"' if line.look else ""
    return f'<text{look} x="{x}" y="{y}" text-anchor="middle">{escape(line.words, quote=False)}</text>'
