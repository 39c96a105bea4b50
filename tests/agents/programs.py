"""The programs of `make agents`: where they are, and a project and a home for each run."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.surfaces.commands import COMMAND

__all__ = ["INSTALLED", "World", "make_world", "node"]

INSTALLED = Path(os.environ["CTX_AGENTS"]) / "node_modules" if os.environ.get("CTX_AGENTS") else None
"""The folder with the installed programs; None without `make agents`."""

SOURCE = 'def check(token):\n    claim = token["exp"]\n    return True\n'
_KEPT = frozenset({"LANG", "PATH", "TERM", "TMPDIR"})
_SECONDS = 300


@dataclass(frozen=True)
class World:
    """A project with one source file, and the empty home of its user. No program reaches a network but loopback."""

    project: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in _KEPT}
        closed = "http://127.0.0.1:9"
        return kept | {
            "HOME": str(self.home),
            "PATH": f"{Path(COMMAND).parent}:{kept['PATH']}",
            "HTTP_PROXY": closed,
            "HTTPS_PROXY": closed,
            "http_proxy": closed,
            "https_proxy": closed,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the project until it ends."""
        return subprocess.run(
            command,
            cwd=self.project,
            env=self.environment | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )

    def ctx(self, *args: str) -> str:
        result = self.run(COMMAND, *args)
        assert result.returncode == 0, result.stderr
        return result.stdout


def make_world(folder: Path) -> World:
    """Make a project that is a repository with a store, as the tutorial asks."""
    world = World(project=folder / "project", home=folder / "home")
    world.project.mkdir()
    world.home.mkdir()
    (world.project / "auth.py").write_text(SOURCE, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", world.project], check=True)
    world.ctx("init")
    return world


def node() -> str:
    """Return a Node.js that runs every program: the pinned one if it is installed, else that of the system."""
    assert INSTALLED is not None
    pinned = sorted(INSTALLED.glob("node-*/bin/node"))
    for program in pinned:
        result = subprocess.run([program, "--version"], capture_output=True, check=False)
        if result.returncode == 0:
            return str(program)
    return "node"


def program(name: str) -> str:
    assert INSTALLED is not None
    return str(INSTALLED / ".bin" / name)


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
