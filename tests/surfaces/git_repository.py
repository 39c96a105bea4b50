"""A repository of git for tests, made with git itself."""

import subprocess
from pathlib import Path

from tests.patience import PATIENCE
from tests.surfaces.commands import child_environment

__all__ = ["git", "git_repository"]

_IDENTITY = {
    **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "ada@example.com" for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(*args: str, cwd: Path) -> str:
    """Run git; return what it printed."""
    ours = {name: value for name, value in child_environment().items() if not name.startswith("GIT_")}
    command = ["git", "-c", "protocol.file.allow=always", *args]
    result = subprocess.run(
        command, cwd=cwd, env=ours | _IDENTITY, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert result.returncode == 0, result
    return result.stdout.strip()


def git_repository(folder: Path) -> Path:
    """Make a folder a repository, with everything in it committed on the branch main."""
    folder.mkdir(parents=True, exist_ok=True)
    git("init", "-q", "-b", "main", cwd=folder)
    git("add", "-A", cwd=folder)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=folder)
    return folder
