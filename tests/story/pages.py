"""Pages that show commands and what they print: reading them, and comparing."""

import re

__all__ = ["fits", "steps_of"]


def steps_of(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a block, with the lines that the page shows below it."""
    steps: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line.removeprefix("$ "), []))
        else:
            steps[-1][1].append(line)
    return steps


def fits(shown: list[str], told: str) -> bool:
    """Whether it is what the page shows: `...` stands for anything in a line, and as a line for any lines."""
    lines = [
        r"(?s:.*)" if line == "..." else re.escape(line + "\n").replace(re.escape("..."), "[^\n]*") for line in shown
    ]
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in told.splitlines())) is not None
