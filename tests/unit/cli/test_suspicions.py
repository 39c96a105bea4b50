"""What looks like a secret is told, whoever asked for silence; machines read it in the answer."""

from io import StringIO

import pytest

from contextplane.cli.output import Screen
from contextplane.cli.render.execution import tell_suspicions

SUSPECT = "ctx: /steps/0/output looks like it holds a secret (AWS access key); it was stored as it is\n"
LONG = "ctx: only the first 256 KiB of /inputs/0/content were searched for secrets\n"


@pytest.mark.parametrize(
    ("screen", "told"),
    [
        (Screen(err=StringIO()), SUSPECT + LONG),
        (Screen(quiet=True, err=StringIO()), SUSPECT),
        (Screen(json=True, err=StringIO()), ""),
    ],
)
def test_silence_hides_no_suspicion(screen: Screen, told: str) -> None:
    tell_suspicions(screen, [("/steps/0/output", "AWS access key")], ["/inputs/0/content"])
    assert isinstance(screen.err, StringIO)
    assert screen.err.getvalue() == told
