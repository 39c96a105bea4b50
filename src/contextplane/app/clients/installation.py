"""Plans and makes the changes that connect a client, and takes them back.

A plan is a list of whole files, before and after. Nothing is written that was not read back first: the new text must
mean the old one plus our entry, or minus it. A file that changed since it was read is not replaced.
"""

import hashlib
import os
import re
import stat
from contextlib import suppress
from typing import Any, ClassVar, Literal

from contextplane.adapters.files.disk import Disk, storage_errors, write_atomically
from contextplane.app.clients.client import SERVER, Client, ClientFiles, CommandLine, Scope, own_command
from contextplane.app.clients.jsonc import add_member, parse_jsonc, remove_member
from contextplane.app.clients.toml_table import append_table, parse_toml, remove_table
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = [
    "ClientConfigChanged",
    "ClientConfigConflict",
    "ClientConfigUnusable",
    "FileChange",
    "InstallationPlan",
    "apply_plan",
    "plan_installation",
    "plan_removal",
    "read_entry",
    "skill_state",
]

_LARGEST = 16 * 1024 * 1024
_MARK = re.compile(r"\n<!-- installed by 'ctx mcp install', sha256:([0-9a-f]{64}) -->\n\Z")
SkillState = Literal["absent", "current", "outdated", "edited"]


class ClientConfigUnusable(ContextPlaneError):
    """A file of a client that cannot be edited safely, and was not changed.

    It is a link, no plain file, too large, not UTF-8, or written in a form that we cannot edit.
    """

    code: ClassVar[str] = "client_config_unusable"
    family: ClassVar[Family] = "refused"


class ClientConfigConflict(ContextPlaneError):
    """The client has another server of our name. It was not replaced."""

    code: ClassVar[str] = "client_config_conflict"
    family: ClassVar[Family] = "conflict"


class ClientConfigChanged(ContextPlaneError):
    """A file of a client changed after it was read. It was not replaced."""

    code: ClassVar[str] = "client_config_changed"
    family: ClassVar[Family] = "conflict"


class FileChange(Value, frozen=True):
    """A file before and after; None where it does not exist."""

    path: str
    before: bytes | None
    after: bytes | None


class InstallationPlan(Value, frozen=True):
    """The changes that connect or disconnect a client, and remarks for people."""

    client: str
    scope: Scope
    base: str
    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]


def plan_installation(client: Client, scope: Scope, files: ClientFiles, *, skill: bool) -> InstallationPlan:
    """Plan the entry of our server, and the skill page. An equal entry and an equal page are left alone."""
    entry = client.entry(own_command(scope), scope)
    before = _read(files.config, files.base, scope)
    existing = _entry(client, before, files.config)
    changes, notes = list[FileChange](), list[str]()
    if existing is None:
        changes.append(FileChange(path=files.config, before=before, after=_with_entry(client, before, entry, files)))
    elif not _starts_us(client, existing, files.base):
        raise ClientConfigConflict(
            f"it has another server with the name {SERVER}",
            at=files.config,
            hint=f"rename that server, or remove it with 'ctx mcp uninstall {client.name} --{scope}'",
        )
    if skill:
        page = _read(files.skill, files.base, scope)
        state = _page_state(page)
        if state == "edited":
            notes.append(f"{files.skill} stays: it was edited, or is not from here")
        elif state != "current":
            changes.append(FileChange(path=files.skill, before=page, after=_skill_page()))
    if (
        changes
        and scope == "project"
        and os.path.isabs(entry["command"][0] if client.name == "opencode" else entry["command"])
    ):
        notes.append("the command is an absolute path, because PATH has no 'ctx' that is this program")
    if changes and scope == "project" and client.note:
        notes.append(client.note)
    return InstallationPlan(
        client=client.name, scope=scope, base=files.base, changes=tuple(changes), notes=tuple(notes)
    )


def plan_removal(client: Client, scope: Scope, files: ClientFiles, *, skill: bool) -> InstallationPlan:
    """Plan to remove the entry with our name, and the skill page if it was not edited."""
    before = _read(files.config, files.base, scope)
    changes, notes = list[FileChange](), list[str]()
    if before is not None and _entry(client, before, files.config) is not None:
        changes.append(FileChange(path=files.config, before=before, after=_without_entry(client, before, files)))
    if skill:
        page = _read(files.skill, files.base, scope)
        if _page_state(page) == "edited":
            notes.append(f"{files.skill} stays: it was edited, or is not from here")
        elif page is not None:
            changes.append(FileChange(path=files.skill, before=page, after=None))
    return InstallationPlan(
        client=client.name, scope=scope, base=files.base, changes=tuple(changes), notes=tuple(notes)
    )


def apply_plan(plan: InstallationPlan) -> None:
    """Make the changes of a plan: each file whole or not at all, with the permissions that it had."""
    for change in plan.changes:
        if _read(change.path, plan.base, plan.scope) != change.before:
            raise ClientConfigChanged(
                "it changed after it was read",
                at=change.path,
                hint="run the same command again, and look at the change",
            )
        with storage_errors(change.path):
            if change.after is None:
                os.remove(change.path)
                _remove_empty_folders(os.path.dirname(change.path), plan.base)
                continue
            os.makedirs(os.path.dirname(change.path), exist_ok=True)
            mode = 0o644 if change.before is None else stat.S_IMODE(os.stat(change.path).st_mode)
            write_atomically(change.path, change.after, disk=Disk(), mode=mode)


def read_entry(client: Client, files: ClientFiles, scope: Scope, project: str) -> CommandLine | None:
    """Return what the configuration of a client starts under our name; None if it has no such server."""
    entry = _entry(client, _read(files.config, files.base, scope), files.config)
    if entry is None:
        return None
    command = client.command_line(entry, project)
    if command is None:
        raise ClientConfigConflict(
            f"its server {SERVER} has no command", at=files.config, hint="write the command, or install it again"
        )
    return command


def skill_state(files: ClientFiles, scope: Scope) -> SkillState:
    """Return whether the skill page is installed, and whether it is the page of this release."""
    return _page_state(_read(files.skill, files.base, scope))


def _starts_us(client: Client, entry: object, project: str) -> bool:
    """Whether an entry starts this server, in any of the ways in which people write it."""
    line = client.command_line(entry, project)
    if line is None:
        return False
    program = os.path.basename(line.command[0])
    return (
        (program == "ctx" and line.command[1:] == ("mcp",))
        or program == "mcp-context-pack"
        or line.command[1:] == ("-m", "contextplane", "mcp")
    )


def _with_entry(client: Client, before: bytes | None, entry: dict[str, Any], files: ClientFiles) -> bytes:
    text = _text(before, files.config)
    if client.is_toml:
        expected = parse_toml(text)
        after = append_table(text, (client.container, SERVER), entry)
        try:
            actual: Any = parse_toml(after)
        except ContextPlaneError:
            actual = None
        servers = expected.setdefault(client.container, {})
        if isinstance(servers, dict):
            servers[SERVER] = entry
    else:
        text = text if text.strip("\ufeff \t\r\n") else "{}"
        new = not before or not before.strip()
        try:
            after = add_member(text, (client.container, SERVER), entry) + ("\n" if new else "")
        except ContextPlaneError as error:
            raise error.under(f"{files.config}#") from error
        actual = parse_jsonc(after).plain()
        expected = parse_jsonc(text).plain()
        servers = expected.setdefault(client.container, {})
        servers[SERVER] = actual.get(client.container, {}).get(SERVER)
    return _checked_text(after, actual, expected, files)


def _without_entry(client: Client, before: bytes, files: ClientFiles) -> bytes | None:
    text = _text(before, files.config)
    if client.is_toml:
        expected: Any = parse_toml(text)
        after = remove_table(text, (client.container, SERVER))
        actual: Any = {} if after is None else parse_toml(after)
    else:
        expected = parse_jsonc(text).plain()
        after = remove_member(text, (client.container, SERVER))
        actual = {} if after is None else parse_jsonc(after).plain()
    del expected[client.container][SERVER]
    for document in (expected, actual):
        if not document.get(client.container, True):
            del document[client.container]
    return None if after is None and not expected else _checked_text(after or "", actual, expected, files)


def _checked_text(after: str, actual: object, expected: object, files: ClientFiles) -> bytes:
    """Return the new text if it has the expected meaning; refuse it otherwise."""
    if actual != expected:
        raise ClientConfigUnusable(
            "it is written in a form that cannot be edited here without losing something",
            at=files.config,
            hint="edit it by hand, as docs/handoff.md shows",
        )
    return after.encode()


def _entry(client: Client, data: bytes | None, path: str) -> object:
    """Return the entry with our name, or None."""
    text = _text(data, path)
    if not text.strip("\ufeff \t\r\n"):
        return None
    try:
        document = parse_toml(text) if client.is_toml else parse_jsonc(text).decode()
    except ContextPlaneError as error:
        raise error.under(path) from error
    servers = document.get(client.container) if isinstance(document, dict) else None
    return servers.get(SERVER) if isinstance(servers, dict) else None


def _text(data: bytes | None, path: str) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise ClientConfigUnusable("it is not UTF-8", at=path, hint="edit it by hand") from error


def _read(path: str, base: str, scope: Scope) -> bytes | None:
    """Read a file of a client; None if it does not exist. Links are refused: replacing one would cut it."""
    with storage_errors(path, reading=True):
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            status = None
        folder = os.path.realpath(os.path.dirname(path))
        if scope == "project" and os.path.commonpath([folder, os.path.realpath(base)]) != os.path.realpath(base):
            raise ClientConfigUnusable(
                "its folder is a link that leads out of the project", at=path, hint="edit the file by hand"
            )
        if status is None:
            return None
        if stat.S_ISLNK(status.st_mode):
            raise ClientConfigUnusable(
                f"it is a link to {os.readlink(path)}", at=path, hint="edit the file that it leads to by hand"
            )
        if not stat.S_ISREG(status.st_mode):
            raise ClientConfigUnusable("it is not a plain file", at=path, hint="move it away")
        if status.st_size > _LARGEST:
            raise ClientConfigUnusable(
                f"it has {status.st_size} bytes, more than {_LARGEST}", at=path, hint="edit it by hand"
            )
        with open(path, "rb") as file:
            return file.read()


def _skill_page() -> bytes:
    """Return the skill page with its mark, by which an edited page is recognized."""
    with open(os.path.join(os.path.dirname(__file__), "handoff_skill.md"), "rb") as file:
        page = file.read()
    return page + f"\n<!-- installed by 'ctx mcp install', sha256:{hashlib.sha256(page).hexdigest()} -->\n".encode()


def _page_state(data: bytes | None) -> SkillState:
    if data is None:
        return "absent"
    if data == _skill_page():
        return "current"
    text = data.decode(errors="replace")
    mark = _MARK.search(text)
    is_ours = mark is not None and hashlib.sha256(text[: mark.start()].encode()).hexdigest() == mark[1]
    return "outdated" if is_ours else "edited"


def _remove_empty_folders(folder: str, base: str) -> None:
    """Remove folders that a removed file leaves empty, up to the folder of the scope."""
    with suppress(OSError):
        while folder != base and folder.startswith(base + os.sep):
            os.rmdir(folder)
            folder = os.path.dirname(folder)
