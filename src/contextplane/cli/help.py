"""Renders help: usage, description, arguments, exit statuses and examples, wrapped at a width.

The formatter of argparse differs between releases of Python. This one prints the same bytes on all of them. It is
imported for `--help` only.

The docstring of a verb's module is its description, and ends with its examples. Paragraphs are wrapped. Lines that are
indented by two spaces are items: a term, two spaces or more, and its text; deeper lines continue an item. A block that
begins with four spaces is a sample of a file: its lines stay as they are.
"""

import os
import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple

from contextplane.app.settings import from_environment
from contextplane.cli.exit import STATUSES
from contextplane.cli.parser import Verb, parser_of

__all__ = ["DEFAULT_WIDTH", "Example", "examples_of", "help_width", "top_help", "verb_help"]

DEFAULT_WIDTH = 80
"""The width if there is no terminal: in a pipe, in a file, and in docs/cli.md."""

_NARROWEST, _WIDEST = 40, 120
_TOP_WIDTH = 60
_USAGE_INDENT = 8
_GAP = 2
_SAMPLE = " " * 2 * _GAP
_NO_BREAK = "\xa0"
_EXAMPLES = "\n\nExamples:\n"
_TOP_EXAMPLES = """\
  ctx demo              run a guided tour
  ctx new refunds.yaml  write a context pack to start from
  ctx pack run.json     store an agent's log"""


class Example(NamedTuple):
    """A command line, and a few words on what it does."""

    command: str
    words: str


def help_width() -> int:
    """Return the width for help: COLUMNS, else that of the terminal, else 80; at most 120."""
    columns = from_environment().columns
    if columns is None and sys.stdout.isatty():
        try:
            columns = os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError):
            columns = None
    return min(max(columns or DEFAULT_WIDTH, _NARROWEST), _WIDEST)


def verb_help(verb: Verb, width: int) -> str:
    """Return the text of `ctx VERB --help`."""
    parser = parser_of(verb)
    description = (verb.load().__doc__ or "").partition(_EXAMPLES)[0]
    sections = [_usage(parser, width), _description(description.strip(), width)]
    groups = [(group.title or "", list(group._group_actions)) for group in parser._action_groups]  # noqa: SLF001  argparse has no other way to ask
    shown = {title: [action for action in actions if action.help != SUPPRESS] for title, actions in groups}
    position = _position((_invocation(action) for actions in shown.values() for action in actions), width)
    sections += [
        "\n".join(
            [f"{title}:", *(_entry(_invocation(action), action.help or "", position, width) for action in actions)]
        )
        for title, actions in shown.items()
        if actions
    ]
    sections += [_statuses(width), _examples(examples_of(verb), width)]
    return "\n\n".join(sections) + "\n"


def top_help(verbs: Sequence[Verb]) -> str:
    """Return the text of `ctx --help`: it fits 60 columns, and is the same at every width.

    `make docs` keeps it in help.txt.
    """
    lines = ["usage: ctx VERB [ARGUMENTS] [--json] [--quiet] [--no-color]", "", "The context plane for AI agents.", ""]
    for group in dict.fromkeys(verb.group for verb in verbs):
        lines.append(f"{group}:")
        lines += [f"  {verb.name:<12}{verb.summary}" for verb in verbs if verb.group == group]
        lines.append("")
    lines += [
        "'ctx VERB --help' shows its options, with examples.",
        "'ctx --version' prints the version.",
        "",
    ]
    lines += [
        "environment:",
        "  CTX_DIR     the store's folder",
        "              (default: the nearest .ctx, here or above)",
        "",
    ]
    return "\n".join([*lines, _statuses(_TOP_WIDTH), "", "examples:", _TOP_EXAMPLES, ""])


def examples_of(verb: Verb) -> tuple[Example, ...]:
    """Return the examples at the end of a verb's docstring."""
    text = (verb.load().__doc__ or "").partition(_EXAMPLES)[2]
    return tuple(Example(*_item(line)) for line in text.strip("\n").split("\n") if line.strip())


def _usage(parser: ArgumentParser, width: int) -> str:
    start = f"usage: {parser.prog} "
    parts = _usage_parts(parser)
    indent = len(start) if len(start) + max(map(len, parts)) <= width else _USAGE_INDENT
    lines, line = [], start.rstrip()
    for part in parts:
        if len(line) + 1 + len(part) > width:
            lines.append(line)
            line = " " * (indent - 1)
        line += f" {part}"
    return "\n".join([*lines, line])


def _usage_parts(parser: ArgumentParser) -> list[str]:
    """List the options, and then the positional arguments. Options that exclude each other are one part."""
    exclusive = {
        id(group._group_actions[0]): group  # noqa: SLF001
        for group in parser._mutually_exclusive_groups  # noqa: SLF001
        if group._group_actions  # noqa: SLF001
    }
    grouped = {id(action) for group in exclusive.values() for action in group._group_actions}  # noqa: SLF001
    options, arguments = [], []
    for action in parser._actions:  # noqa: SLF001
        if not action.option_strings:
            arguments.append(_arguments(action))
        elif id(action) in exclusive:
            group = exclusive[id(action)]
            choices = " | ".join(map(_short_invocation, group._group_actions))  # noqa: SLF001
            options.append(f"({choices})" if group.required else f"[{choices}]")
        elif id(action) not in grouped:
            text = _short_invocation(action)
            options.append(text if action.required else f"[{text}]")
    return options + arguments


def _short_invocation(action: Action) -> str:
    value = _value(action)
    return f"{action.option_strings[0]} {value}" if value else action.option_strings[0]


def _invocation(action: Action) -> str:
    if not action.option_strings:
        return _value(action)
    value = _value(action)
    return ", ".join(action.option_strings) + (f" {value}" if value else "")


def _value(action: Action) -> str:
    """Return how the value of an argument is written; "" for an option that takes none."""
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.choices is not None:
        return f"{{{','.join(map(str, action.choices))}}}"
    return action.dest.upper() if action.option_strings else action.dest


def _arguments(action: Action) -> str:
    value = _value(action)
    forms = {"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} [{value} ...]"}
    return forms.get(str(action.nargs), value)


def _description(text: str, width: int) -> str:
    blocks = [block.split("\n") for block in re.split(r"\n{2,}", text)]
    return "\n\n".join((_sample if lines[0].startswith(_SAMPLE) else _block)(lines, width) for lines in blocks)


def _sample(lines: Sequence[str], width: int) -> str:
    """Keep the lines of a sample, indented by two spaces. A line that is too long continues below itself."""
    indents = [" " * (len(line) - len(line.lstrip(" ")) - _GAP) for line in lines]
    return "\n".join(
        _fill(line.strip(), width, indent, indent + " " * _GAP) for line, indent in zip(lines, indents, strict=True)
    )


def _block(lines: Sequence[str], width: int) -> str:
    """Wrap the paragraphs of a block, and its items below each other."""
    blocks: list[list[str]] = []
    for line in lines:
        kind = _kind(line)
        if kind == "item" or not blocks or (kind == "text" and _kind(blocks[-1][0]) == "item"):
            blocks.append([line])
        else:
            blocks[-1].append(line)
    joined = [f"{block[0]} {' '.join(line.strip() for line in block[1:])}".rstrip() for block in blocks]
    items = [_item(line) for line in joined if _kind(line) == "item"]
    position = _position((term for term, text in items if text), width)
    return "\n".join(
        _entry(*_item(line), position, width) if _kind(line) == "item" else _fill(line, width) for line in joined
    )


def _kind(line: str) -> str:
    indent = len(line) - len(line.lstrip(" "))
    return "text" if not indent else "item" if indent == _GAP else "more"


def _item(line: str) -> tuple[str, str]:
    """Split an item into its term and its text."""
    term, _, text = line.strip().partition("  ")
    return term, text.strip()


def _position(terms: Iterable[str], width: int) -> int:
    """Return the column at which texts begin: behind the longest term that leaves them room."""
    most = max(16, min(32, width * 2 // 5))
    return max((len(term) + 2 * _GAP for term in terms if len(term) + 2 * _GAP <= most), default=most // 2)


def _entry(term: str, text: str, position: int, width: int) -> str:
    """Format a term and its text, wrapped in a column of its own. A long term gets its own line."""
    if not text:
        return _fill(term, width, " " * _GAP, " " * 2 * _GAP)
    column = " " * position
    if len(term) + 2 * _GAP <= position:
        return _fill(text, width, f"{' ' * _GAP}{term}".ljust(position), column)
    return f"{_fill(term, width, ' ' * _GAP, ' ' * 2 * _GAP)}\n{_fill(text, width, column, column)}"


def _statuses(width: int) -> str:
    kept_together = re.sub(r"(?<=\d) ", _NO_BREAK, STATUSES)
    return f"exit status:\n{_fill(kept_together, width, ' ' * _GAP, ' ' * _GAP)}".replace(_NO_BREAK, " ")


def _examples(examples: Sequence[Example], width: int) -> str:
    """Format the examples: with their words beside them where all fit, else below each."""
    column = max((len(example.command) for example in examples), default=0) + 2 * _GAP
    if all(column + len(example.words) <= width for example in examples):
        lines = [f"{' ' * _GAP}{example.command}".ljust(column) + example.words for example in examples]
    else:
        below = " " * 3 * _GAP
        lines = [f"{' ' * _GAP}{command}\n{_fill(words, width, below, below)}" for command, words in examples]
    return "\n".join(["examples:", *(line.rstrip() for line in lines)])


def _fill(text: str, width: int, first: str = "", other: str = "") -> str:
    lines = wrap(
        text, width, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)
