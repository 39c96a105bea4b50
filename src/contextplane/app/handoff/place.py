"""Finds the handoff packs of a folder: their store, the code that they refer to, and who writes.

All folders of a checkout of git share one store, and so do its worktrees. Each worktree has its own files.
"""

import os
import pwd
from contextlib import suppress
from typing import TYPE_CHECKING

from contextplane.adapters.files.checkout import Checkout, find_checkout, read_head
from contextplane.adapters.files.store_dir import (
    NAME,
    REFERENCE_ROOT,
    StoreNotFound,
    discover_store,
    reject_other_owner,
)
from contextplane.adapters.files.workspace import is_below
from contextplane.app.settings import Settings, git_environment
from contextplane.model.handoff import HandoffProvenance
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.adapters.git_process import GitProcess

__all__ = ["HandoffPlace", "RenamedFiles", "current_provenance", "handoff_paths", "handoff_place"]


class HandoffPlace(Value, frozen=True):
    """Where the handoff packs of a folder are, and the root of the code that they refer to.

    The `store` need not exist. `reference`: the reference root to import packs from. `checkout`: the checkout of git
    that the folder is in. `here`: the working folder itself.
    """

    here: str
    store: str
    reference: str
    source_root: str
    checkout: Checkout | None

    @property
    def working_folder(self) -> str:
        """The working folder as a path below the source root; empty if it is that root, or not below it."""
        root = os.path.realpath(self.source_root)
        return os.path.relpath(self.here, root) if is_below(root, self.here) and self.here != root else ""


def handoff_place(settings: Settings) -> HandoffPlace:
    """Find the handoff packs of the working folder, and the folder that their refs lead into."""
    checkout = find_checkout(settings.cwd)
    store, reference = _handoff_store(settings, checkout)
    return HandoffPlace(
        here=os.path.realpath(settings.cwd),
        store=store,
        reference=reference,
        source_root=_source_root(settings, store, checkout),
        checkout=checkout,
    )


def handoff_paths(settings: Settings) -> tuple[str, str]:
    """Return the path of the store, which need not exist, and the reference root to import packs from."""
    return _handoff_store(settings, find_checkout(settings.cwd))


def _handoff_store(settings: Settings, checkout: Checkout | None) -> tuple[str, str]:
    if settings.handoff.root is not None:
        root = os.path.abspath(os.path.join(settings.cwd, settings.handoff.root))
        return os.path.join(root, NAME), root
    here = os.path.abspath(settings.cwd)
    reference = os.path.join(here, REFERENCE_ROOT)
    if settings.ctx_dir is not None:
        named = os.path.abspath(os.path.join(settings.cwd, settings.ctx_dir))
        with suppress(StoreNotFound):
            named = discover_store(settings.cwd, settings.ctx_dir, sudo_uid=settings.sudo_uid).path
        return named, reference
    return _find_store(settings, here, checkout)


def _find_store(settings: Settings, here: str, checkout: Checkout | None) -> tuple[str, str]:
    """Find the store of a folder without a setting that names it."""
    reference = os.path.join(here, REFERENCE_ROOT)
    folders = _folders_of_project(here, checkout)
    for folder in folders:
        agents = os.path.join(folder, REFERENCE_ROOT)
        if os.path.lexists(os.path.join(agents, NAME, "config.json")):
            # Also if a store is made in a folder above later: what agents wrote stays where it was.
            reject_other_owner(os.path.join(agents, NAME), settings.sudo_uid)
            return os.path.join(agents, NAME), agents
        if os.path.isdir(os.path.join(folder, NAME)):
            return discover_store(folder, None, sudo_uid=settings.sudo_uid).path, reference
    for above in dict.fromkeys(os.path.dirname(folder) for folder in (folders[-1], _last_below(here, checkout))):
        with suppress(StoreNotFound):
            return discover_store(above, None, sudo_uid=settings.sudo_uid).path, reference
    if not os.path.isdir(reference):
        reference = os.path.join(folders[-1], REFERENCE_ROOT)
    return os.path.join(reference, NAME), reference


def _folders_of_project(here: str, checkout: Checkout | None) -> list[str]:
    """Return the folders from this one up to the root of its checkout, then the same of the main worktree."""
    if checkout is None:
        return [here]
    folders = _folders_up(os.path.realpath(here), checkout.root)
    if checkout.main_root in (None, checkout.root):
        return folders
    return folders + [
        os.path.normpath(os.path.join(checkout.main_root, os.path.relpath(folder, checkout.root))) for folder in folders
    ]


def _folders_up(folder: str, root: str) -> list[str]:
    folders = [folder]
    while folders[-1] != root:
        folders.append(os.path.dirname(folders[-1]))
    return folders


def _last_below(here: str, checkout: Checkout | None) -> str:
    return here if checkout is None else checkout.root


def _source_root(settings: Settings, store: str, checkout: Checkout | None) -> str:
    """Return the folder that refs lead into: the one that holds the store, or the root of the checkout.

    It is the latter if the store is outside of the checkout. A worktree has its own files, in the folder at the place
    of the one that holds the store.
    """
    if settings.handoff.source_root is not None:
        return os.path.join(settings.cwd, settings.handoff.source_root)
    here, holder = os.path.realpath(settings.cwd), os.path.realpath(os.path.dirname(store))
    holder = holder.removesuffix(os.sep + REFERENCE_ROOT)
    if checkout is None:
        return holder if is_below(holder, here) else settings.cwd
    if not is_below(checkout.root, holder) and checkout.main_root and is_below(checkout.main_root, holder):
        holder = os.path.normpath(os.path.join(checkout.root, os.path.relpath(holder, checkout.main_root)))
    return holder if is_below(checkout.root, holder) and is_below(holder, here) else checkout.root


class RenamedFiles:
    """The new names of missing files below a source root. Git is asked when the first one is missing."""

    def __init__(self, checkout: Checkout, source_root: str) -> None:
        self._checkout = checkout
        self._checkout_root = checkout.root
        self._source_root = os.path.realpath(source_root)
        self._git: GitProcess | None = None

    def new_path(self, path: str) -> str | None:
        """Return where a file is now; None if git does not know it, or if it left the source root."""
        if not is_below(self._checkout_root, self._source_root):
            return None
        if self._git is None:
            from contextplane.adapters.git_process import GitProcess

            self._git = GitProcess(self._checkout, git_environment())
        was = os.path.relpath(os.path.join(self._source_root, path), self._checkout_root)
        now = os.path.join(self._checkout_root, self._git.renamed_path(was) or os.pardir)
        return os.path.relpath(now, self._source_root) if is_below(self._source_root, now) else None


# --- provenance -------------------------------------------------------------------------------------------------------

_LONGEST = 120
_READ = 2000  # before it is shortened: half a secret is not recognized


def current_provenance(client: str, checkout: Checkout | None) -> HandoffProvenance:
    """Return who writes now, and on which code.

    Names come from the client and from the repository. Nothing decides by them. Without a git that works, the dirty
    state is not known.
    """
    author = HandoffProvenance(client=_clean(client), user=_clean(_user()))
    if checkout is None:
        return author
    head = read_head(checkout)
    dirty = None
    if head.commit is not None:
        from contextplane.adapters.git_process import GitProcess

        dirty = GitProcess(checkout, git_environment()).is_dirty()
    return HandoffProvenance(
        client=author.client, user=author.user, commit=head.commit, branch=_clean(head.branch or ""), dirty=dirty
    )


def _user() -> str:
    """Return the name of the user by the system, not by the environment."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def _clean(text: str) -> str | None:
    """Return a text on one line, shortened, without what looks like a secret; None if nothing is left."""
    from contextplane.policy.detect.secrets import redact_shapes

    text = redact_shapes(text[:_READ])
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text[:_LONGEST] or None
