"""What a verb is: a name and a line in the table, and a file that parses its arguments and runs."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Protocol

from contextplane.cli.screen import Screen
from contextplane.model.value import Value

__all__ = ["Verb", "VerbModule"]


class VerbModule(Protocol):
    """What a file in `cli/verbs/` provides. Its docstring is the description in its `--help`."""

    def add_arguments(self, parser: ArgumentParser, /) -> None: ...

    def run(self, args: Namespace, screen: Screen, /) -> int: ...


class Verb(Value, frozen=True):
    """One verb."""

    name: str
    group: str
    summary: str
    load: Callable[[], VerbModule]
