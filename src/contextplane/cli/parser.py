"""The parsers of verbs: one is made when its verb runs, or when a shell completes a line of it.

A verb is a line in the table, and a module that adds its arguments and runs.
"""

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import ClassVar, NoReturn, Protocol

from contextplane.cli.output import CommandOutput
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

# argparse looks its few words up in catalogs of translations, for each parser: `locale` and the file system. Ours are
# English in any case.
setattr(argparse, "_", str)  # noqa: B010  it is private, and no longer there if Python changes

__all__ = ["Usage", "Verb", "VerbModule", "parser_of"]


class VerbModule(Protocol):
    """The functions of a module in `cli/verbs/`. Its docstring is its help: description and examples."""

    def add_arguments(self, parser: ArgumentParser, /) -> None: ...

    def run(self, args: Namespace, output: CommandOutput, /) -> int: ...


class Verb(Value, frozen=True):
    """A line of the table. `load` imports the module of the verb, and no other."""

    name: str
    group: str
    summary: str
    load: Callable[[], VerbModule]


class Usage(ContextPlaneError):
    """The command line is not one that `ctx` understands."""

    code: ClassVar[str] = "usage"
    family: ClassVar[Family] = "usage"


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of printing and exiting.

    An option with an empty value is refused: most likely a variable was not set, which is not the same as leaving the
    option out.
    """

    def error(self, message: str) -> NoReturn:
        raise Usage(message, hint=f"see '{self.prog} --help'")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if value == "" and action.option_strings:
            raise argparse.ArgumentError(action, "its value is empty")
        if action.choices is not None and value not in action.choices:
            self._refuse_near(action, str(value))
            # The words of argparse differ between releases of the same Python: some quote the choices, some do not.
            choices = ", ".join(map(repr, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {choices})")

    def _refuse_near(self, action: argparse.Action, value: str) -> None:
        """Refuse a value that is nearly one of the choices, and name that one."""
        from contextplane.model.suggestion import closest_name

        near = closest_name(value, (str(choice) for choice in action.choices or ()))
        if near:
            option = "".join(f"{name} " for name in action.option_strings[-1:])
            raise Usage(f"no such choice: {option}{value[:80]!r}", hint=f"did you mean '{self.prog} {option}{near}'?")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter of fixed width: argparse makes one for each argument, and would load `shutil`."""
    return argparse.HelpFormatter(prog, width=80)


def add_globals(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="answer with one JSON document")
    group.add_argument("--quiet", action="store_true", help="print only identities, contents and failures")
    group.add_argument("--no-color", action="store_true", help="do not use colors")


def parser_of(verb: Verb) -> argparse.ArgumentParser:
    """Return the parser of one verb."""
    module = verb.load()
    parser = _Parser(prog=f"ctx {verb.name}", allow_abbrev=False, formatter_class=_formatter)
    module.add_arguments(parser)
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to ask
        if action.choices and not action.option_strings and action.metavar is None:
            # The error for a missing argument names its choices, as the help does.
            action.metavar = f"{{{','.join(map(str, action.choices))}}}"
    add_globals(parser)
    return parser
