"""Asks git about a checkout: which files were renamed, and whether files differ from the commit.

Git is only asked, and nothing that a repository configures is run: no hooks, no file system monitor, no filters, no
network. Variables of the environment with the names of git do not reach it. Without a git that works every answer is
"unknown".
"""

import hashlib
import os
import select
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping

from contextplane.adapters.files.checkout import Checkout
from contextplane.adapters.files.workspace import is_below

__all__ = ["GitProcess", "git_program"]

_SECONDS = 2.0
_MOST_OUTPUT = 4 << 20
_MOST_RENAMES = 8
_MOST_COMPARED, _MOST_COMPARED_BYTES = 50, 4 << 20
_READ = 1 << 16
_KEPT_VARIABLES = ("HOME", "XDG_CONFIG_HOME")
_VARIABLES = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_OPTIONS = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "diff.renameLimit=2000"),
    *("-c", "safe.bareRepository=explicit"),
)
_NO_LFS = ("-c", "filter.lfs.clean=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false")
_MOST_CONFIG_BYTES = 64 * 1024
_DIFF = ("-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")


def git_program(path: str, root: str) -> str | None:
    """Find git in the folders of `PATH`. Relative folders, and those of the checkout itself, are skipped."""
    for folder in path.split(os.pathsep):
        program = os.path.join(folder, "git")
        if os.path.isabs(folder) and not is_below(root, os.path.realpath(folder)) and os.access(program, os.X_OK):
            return program
    return None


class GitProcess:
    """Asks git about a checkout. All questions together get a few seconds."""

    def __init__(self, checkout: Checkout, environment: Mapping[str, str]) -> None:
        self._checkout = checkout
        self._root = checkout.root
        self._program = git_program(environment.get("PATH", ""), self._root)
        kept = {name: environment[name] for name in _KEPT_VARIABLES if name in environment}
        folder = os.path.dirname(self._program or "")
        self._environment = {**kept, **_VARIABLES, "PATH": folder}
        self._seconds_left = _SECONDS
        self._staged: dict[str, str] | None = None

    def renamed_path(self, path: str) -> str | None:
        """Return where a file that is missing is now, relative to the root; None if git does not know.

        Renames that are staged count, and those of the history of the commit, one after the other.
        """
        for _ in range(_MOST_RENAMES):
            renamed = self._staged_renames().get(path) or self._committed_rename(path)
            if renamed is None:
                return None
            if os.path.lexists(os.path.join(self._root, renamed)):
                return renamed
            path = renamed
        return None

    def is_dirty(self) -> bool | None:
        """Whether a tracked file differs from the commit; None if that is unknown. New files do not count.

        Git compares sizes and times, and contents where these do not decide. That would run the filters of the
        repository, so all of them are switched off. Files that git takes for modified are compared here.
        """
        filters = self._filter_options()
        if filters is None:
            return None
        output = self._run("diff-index", *_DIFF, "--no-renames", "HEAD", "--", options=filters)
        if output is None:
            return None
        entries = list(_pairs(output))
        return len(entries) > _MOST_COMPARED or any(self._differs(meta, path) for meta, path in entries)

    def _filter_options(self) -> tuple[str, ...] | None:
        """Return the options that switch every filter off; None if git does not say which there are.

        Git is asked only if the configuration of the repository may have one. Filters of the user's own configuration
        are those of every git of that user; of these only Git LFS is switched off.
        """
        if not self._may_have_filters():
            return _NO_LFS
        output = self._run("config", "--null", "--name-only", "--get-regexp", r"^filter\..*", ok=(0, 1))
        if output is None:
            return None
        keys = [os.fsdecode(key) for key in output.split(b"\0") if key]
        drivers = dict.fromkeys(key.rpartition(".")[0] for key in keys)
        if any("=" in driver or not driver.startswith("filter") for driver in drivers):
            return None  # such a name cannot be set by an option, or is none
        off = ((f"{driver}.clean=", f"{driver}.process=", f"{driver}.required=false") for driver in drivers)
        return tuple(part for settings in off for setting in settings for part in ("-c", setting))

    def _may_have_filters(self) -> bool:
        """Whether the repository configures a filter, or includes another file."""
        git_dir, common_dir = self._checkout.git_dir, self._checkout.common_dir
        for path in dict.fromkeys((os.path.join(common_dir, "config"), os.path.join(git_dir, "config.worktree"))):
            try:
                with open(path, "rb") as file:
                    text = file.read(_MOST_CONFIG_BYTES + 1).lower()
            except FileNotFoundError:
                continue
            except OSError:
                return True
            if len(text) > _MOST_CONFIG_BYTES or b"filter" in text or b"include" in text:
                return True
        return False

    def _differs(self, meta: bytes, path: bytes) -> bool:
        """Whether a file has other content than the blob of an entry that may be modified."""
        old_mode, new_mode, old, new, status = (meta.split(b" ") + [b""] * 5)[:5]
        if status != b"M" or new.strip(b"0") or old_mode.lstrip(b":") != new_mode:
            return True  # added, removed, staged, or of another kind
        data = _file_bytes(os.path.join(os.fsencode(self._root), path))
        if data is None:
            return True
        blob = b"blob %d\0" % len(data) + data
        digest = hashlib.sha256(blob) if len(old) > 40 else hashlib.sha1(blob, usedforsecurity=False)  # noqa: PLR2004
        return digest.hexdigest().encode() != old

    def _staged_renames(self) -> dict[str, str]:
        if self._staged is None:
            output = self._run("diff-index", "--cached", "-M", "--diff-filter=R", "--name-status", *_DIFF, "HEAD", "--")
            self._staged = dict(_renames(output or b""))
        return self._staged

    def _committed_rename(self, path: str) -> str | None:
        """Return the name that the last commit which had the file gave to it."""
        commit = (self._run("rev-list", "-1", "HEAD", "--", path) or b"").strip()
        if not commit.isalnum():
            return None
        names = ("-r", "-m", "--root", "-M", "--diff-filter=R", "--name-status", "--no-commit-id")
        output = self._run("diff-tree", *names, *_DIFF, commit.decode("ascii"), "--")
        return dict(_renames(output or b"")).get(path)

    def _run(self, *arguments: str, options: tuple[str, ...] = (), ok: tuple[int, ...] = (0,)) -> bytes | None:
        """Return what git prints; None if it fails, prints too much, or takes too long."""
        if self._program is None or self._seconds_left <= 0:
            return None
        begun = time.monotonic()
        try:
            process = subprocess.Popen(  # noqa: S603  git, found in PATH, with arguments of our own
                [self._program, *_OPTIONS, *options, *arguments],
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, ValueError):
            return None
        with process:
            output = _read_output(process.stdout.fileno(), begun + self._seconds_left) if process.stdout else None
            if output is None:
                process.kill()
        self._seconds_left -= time.monotonic() - begun
        return output if process.returncode in ok else None


def _read_output(fd: int, deadline: float) -> bytes | None:
    """Return all output of a process; None if it is too much or comes too late."""
    chunks: list[bytes] = []
    size = 0
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while size <= _MOST_OUTPUT:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        chunk = os.read(fd, _READ)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    return None


def _pairs(output: bytes) -> Iterator[tuple[bytes, bytes]]:
    parts = output.split(b"\0")
    return zip(parts[::2], parts[1::2], strict=False)


def _renames(output: bytes) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of each rename in the output of git."""
    parts = output.split(b"\0")
    for status, old, new in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        if status.startswith(b"R"):
            yield os.fsdecode(old), os.fsdecode(new)


def _file_bytes(path: bytes) -> bytes | None:
    """Return the content of a regular file, or where a link leads; None if it is anything else, or large."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_COMPARED_BYTES:
            return None
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            return file.read(_MOST_COMPARED_BYTES + 1)
    except OSError:
        return None
