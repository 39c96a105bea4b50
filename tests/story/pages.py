"""Reads pages that show commands and their output, and compares output with a page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Command", "File", "fits", "parts_of", "prose_of", "steps_of"]

# A comment before a block names the file that it is. A block that shows a fence has a longer one itself.
_BLOCK = re.compile(r"^(?:<!-- file: (\S+) -->\n)?(`{3,})(\w+)\n(.*?)^\2$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class File:
    """A file that a page shows in full, for its reader to save."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page, and the output lines that the page shows below it."""

    line: str
    shown: tuple[str, ...]


def parts_of(page: str) -> Iterator[File | Command]:
    """Yield every file and every command of a page, in its order. A block that is neither is refused."""
    for name, _, language, text in _BLOCK.findall(page):
        if name:
            yield File(name, text)
            continue
        if language != "console":
            raise ValueError(f"a block of {language} that no test looks at: {text[:60]!r}")
        yield from (Command(line, tuple(shown)) for line, shown in steps_of(text))


def prose_of(page: str) -> str:
    """Return a page without its blocks."""
    return _BLOCK.sub("", page)


def steps_of(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a block, with the lines that the page shows below it."""
    steps: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line.removeprefix("$ "), []))
        else:
            steps[-1][1].append(line)
    return steps


def fits(shown: list[str], output: str) -> bool:
    """Whether an output is what the page shows. `...` matches anything in a line, and as a line any lines."""
    lines = [
        r"(?s:.*)" if line == "..." else re.escape(line + "\n").replace(re.escape("..."), "[^\n]*") for line in shown
    ]
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in output.splitlines())) is not None
