"""A clock that is behind what is on record is told, and nothing is said of one that is not."""

import io
from pathlib import Path

from contextplane.app.init import init
from contextplane.app.platform import opened
from contextplane.app.registry.keys import KeyDesk
from contextplane.app.settings import Settings
from contextplane.cli.keys.session import tell_clock
from contextplane.cli.output import Screen


def test_how_far_a_clock_is_behind_is_told_on_standard_error(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)))
    string_io = io.StringIO()
    with opened(Settings(cwd=str(tmp_path))) as platform:
        desk = KeyDesk(platform, lambda: None)
        tell_clock(desk, Screen(err=string_io))
        assert string_io.getvalue() == ""
        desk.behind = 90_061
        tell_clock(desk, Screen(err=string_io))
    assert string_io.getvalue().startswith("ctx: this machine's clock is 1 day, 1:01:01 behind what is on record, ")
