"""Finds the checkout of git that a folder is in, by reading files alone: git is not run.

Nothing that these files say is trusted further than to find a folder. A linked worktree counts as one only if the
repository that it names knows it, so that a downloaded folder cannot claim to belong to another project.
"""

import os

from contextplane.adapters.files.workspace import is_below
from contextplane.model.value import Value

__all__ = ["Checkout", "CheckoutHead", "find_checkout", "read_head"]

_MOST_BYTES = 4096
_MOST_PACKED_BYTES = 16 << 20
_POINTER = "gitdir:"
_REF = "ref:"
_BRANCHES = "refs/heads/"
_HEX = frozenset("0123456789abcdef")
_DIGEST_LENGTHS = (40, 64)
_MOST_LINKS = 5


class Checkout(Value, frozen=True):
    """A folder with the files of one commit.

    `main_root`: the root of the main worktree; None if there is none.
    `git_dir` belongs to this worktree, `common_dir` to all worktrees of the repository.
    """

    root: str
    git_dir: str
    common_dir: str
    main_root: str | None


class CheckoutHead(Value, frozen=True):
    """The commit that is checked out, and its branch; None for each that is not known."""

    commit: str | None = None
    branch: str | None = None


def find_checkout(start: str) -> Checkout | None:
    """Find the checkout that a folder is in. A submodule is part of the checkout around it."""
    folder, inner = os.path.realpath(start), None
    while True:
        checkout = _checkout_at(folder)
        if checkout is not None:
            if inner is not None and not is_below(checkout.common_dir, inner.git_dir):
                return inner
            if not _may_be_submodule(checkout):
                return checkout
            inner = inner or checkout
        parent = os.path.dirname(folder)
        if parent == folder:
            return inner
        folder = parent


def _checkout_at(folder: str) -> Checkout | None:
    """Return the checkout with this root; None if the folder is none."""
    entry = os.path.join(folder, ".git")
    try:
        if os.path.isdir(entry):
            git_dir = os.path.realpath(entry)
            return _unless_empty(Checkout(root=folder, git_dir=git_dir, common_dir=git_dir, main_root=folder))
        pointer = _read_line(entry)
        if pointer is None or not pointer.startswith(_POINTER):
            return None
        git_dir = os.path.realpath(os.path.join(folder, pointer.removeprefix(_POINTER).strip()))
        common = _read_line(os.path.join(git_dir, "commondir"))
        if common is None:
            return _unless_empty(Checkout(root=folder, git_dir=git_dir, common_dir=git_dir, main_root=folder))
        common_dir = os.path.realpath(os.path.join(git_dir, common))
        main_root = _main_root(common_dir) if _is_known_worktree(git_dir, entry) else None
        return _unless_empty(Checkout(root=folder, git_dir=git_dir, common_dir=common_dir, main_root=main_root))
    except (OSError, ValueError):
        return None


def _unless_empty(checkout: Checkout) -> Checkout | None:
    return checkout if os.path.lexists(os.path.join(checkout.git_dir, "HEAD")) else None


def _is_known_worktree(git_dir: str, entry: str) -> bool:
    """Whether the repository says that its worktree is at this place."""
    place = _read_line(os.path.join(git_dir, "gitdir"))
    return place is not None and os.path.realpath(os.path.join(git_dir, place)) == os.path.realpath(entry)


def _main_root(common_dir: str) -> str | None:
    """Return the root of the main worktree; None for a repository that is bare or kept elsewhere."""
    root, name = os.path.split(common_dir)
    return root if name == ".git" else None


def _may_be_submodule(checkout: Checkout) -> bool:
    return f"{os.sep}modules{os.sep}" in checkout.git_dir and not is_below(checkout.root, checkout.git_dir)


def _read_line(path: str) -> str | None:
    """Return the text of a short file, without the line end; None if it is missing, long or not text."""
    data = _read_bytes(path, _MOST_BYTES)
    if data is None:
        return None
    try:
        text = os.fsdecode(data).rstrip("\r\n")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or "\n" in text else text


def _read_bytes(path: str, most: int) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with open(fd, "rb") as file:
        try:
            data = file.read(most + 1)
        except OSError:  # a folder
            return None
    return data if len(data) <= most else None


def read_head(checkout: Checkout) -> CheckoutHead:
    """Read the commit and the branch of a checkout. In other formats than files of refs they are unknown."""
    head = _read_line(os.path.join(checkout.git_dir, "HEAD")) or ""
    if not head.startswith(_REF):
        return CheckoutHead(commit=_as_commit(head))
    ref = head.removeprefix(_REF).strip()
    branch = ref.removeprefix(_BRANCHES) if ref.startswith(_BRANCHES) else None
    if branch is None or branch == ".invalid" or ".." in ref.split("/"):
        return CheckoutHead()
    return CheckoutHead(commit=_resolve_ref(checkout, ref), branch=branch)


def _resolve_ref(checkout: Checkout, ref: str) -> str | None:
    for _ in range(_MOST_LINKS):
        line = _read_line(os.path.join(checkout.common_dir, ref))
        if line is None:
            return _packed_commit(checkout, ref)
        if not line.startswith(_REF):
            return _as_commit(line)
        ref = line.removeprefix(_REF).strip()
        if not ref.startswith("refs/") or ".." in ref.split("/"):
            return None
    return None


def _packed_commit(checkout: Checkout, ref: str) -> str | None:
    packed = _read_bytes(os.path.join(checkout.common_dir, "packed-refs"), _MOST_PACKED_BYTES) or b""
    suffix = b" " + os.fsencode(ref)
    lines = (line for line in packed.splitlines() if line.endswith(suffix))
    return next((_as_commit(os.fsdecode(line.removesuffix(suffix))) for line in lines), None)


def _as_commit(text: str) -> str | None:
    return text if len(text) in _DIGEST_LENGTHS and _HEX.issuperset(text) else None
