"""A suspected secret is printed also with --quiet; with --json it is in the answer."""

from io import StringIO

import pytest

from contextplane.cli.output import CommandOutput
from contextplane.cli.render.execution import print_suspicions

SUSPECT = "ctx: /steps/0/output may contain a secret (AWS access key); it was stored unchanged\n"
LONG = "ctx: only the first 256 KiB of /inputs/0/content were searched for secrets\n"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (CommandOutput(err=StringIO()), SUSPECT + LONG),
        (CommandOutput(quiet=True, err=StringIO()), SUSPECT),
        (CommandOutput(json=True, err=StringIO()), ""),
    ],
)
def test_silence_hides_no_suspicion(output: CommandOutput, expected: str) -> None:
    print_suspicions(output, [("/steps/0/output", "AWS access key")], ["/inputs/0/content"])
    assert isinstance(output.err, StringIO)
    assert output.err.getvalue() == expected
