"""A clock that is behind the times on record is noted on standard error."""

import io
from pathlib import Path

from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.settings import Settings
from contextplane.cli.keys.session import note_clock_behind
from contextplane.cli.output import CommandOutput


def test_how_far_a_clock_is_behind_is_told_on_standard_error(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)))
    stderr = io.StringIO()
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        key_store = KeyStore(platform, lambda: None)
        note_clock_behind(key_store, CommandOutput(err=stderr))
        assert stderr.getvalue() == ""
        key_store.behind = 90_061
        note_clock_behind(key_store, CommandOutput(err=stderr))
    assert stderr.getvalue().startswith("ctx: this machine's clock is 1 day, 1:01:01 behind the registry, ")
