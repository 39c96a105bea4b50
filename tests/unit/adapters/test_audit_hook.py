"""The rules of the audit hook, one by one: what it refuses, and what it allows."""

import os
from pathlib import Path

import pytest

from tests.unit.adapters.sandbox_world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("audit_hook"))


READ, WRITE = os.O_RDONLY, os.O_WRONLY | os.O_CREAT


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("open", ("../secret", "r", READ)),
        ("open", (b"../secret", "r", READ)),
        ("open", (Path("../secret"), None, READ)),
        ("open", (".ctx/config.json", "r", READ)),
        ("open", ("deep/kept/config.json", "r", READ)),
        ("open", (os.__file__, "w", WRITE)),
        ("open", ("a.txt", "w", WRITE)),
        ("open", ("deep/new", "w", WRITE)),
        ("open", ("up/in", "w", WRITE)),
        ("os.listdir", ("..",)),
        ("os.scandir", ("deep/kept",)),
        ("os.chdir", ("/",)),
        ("os.remove", ("../in", -1)),
        ("os.remove", ("../in", 999_999)),
        ("os.mkdir", ("new", 0o777, -1)),
        ("os.rename", ("a.txt", "../a.txt", -1, -1)),
        ("os.rename", ("../secret", "b.txt", -1, -1)),
        ("os.symlink", ("a.txt", "../b.txt", -1)),
        ("sqlite3.connect", ("../x.db",)),
        ("sqlite3.connect", ("a.txt",)),
        ("sqlite3.enable_load_extension", (None, True)),
        ("os.system", (b"true",)),
        ("subprocess.Popen", ("true", [], None, None)),
        ("os.killpg", (1, 9)),
        ("ctypes.dlopen", (None,)),
        ("socket.getaddrinfo", ("example.org", 80, 0, 0, 0)),
        ("socket.getaddrinfo", (b"example.org", 80, 0, 0, 0)),
        ("socket.getaddrinfo", (None, 80, 0, 0, 0)),
        ("socket.connect", (None, ("10.0.0.1", 80))),
        ("socket.connect", (None, "/run/some.sock")),
        ("socket.bind", (None, ("127.0.0.1", 0))),
    ],
)
def test_the_audit_hook_refuses(
    world: World, monkeypatch: pytest.MonkeyPatch, event: str, args: tuple[object, ...]
) -> None:
    monkeypatch.chdir(world.root)
    with pytest.raises(PermissionError):
        world.audit_hook("here.example", "127.0.0.1", scratch=str(world.root.parent / "scratch"))(event, args)


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("open", ("a.txt", "r", READ)),
        ("open", ("../scratch/new", "w", WRITE)),
        ("open", ("../scratch/new", "r", READ)),
        ("os.rename", ("../scratch/new", "../scratch/newer", -1, -1)),
        ("open", (3, "w", WRITE)),
        ("open", (3, "r", READ)),
        ("open", (os.__file__, "r", READ)),
        ("open", (os.devnull, "w", WRITE)),
        ("open", ("up/in", "r", READ)),
        ("os.listdir", (None,)),
        ("os.truncate", (3, 0)),
        ("sqlite3.connect", (":memory:",)),
        ("socket.getaddrinfo", ("HERE.example", 80, 0, 0, 0)),
        ("socket.connect", (None, ("127.0.0.1", 80))),
        ("socket.sendmsg", (None, None)),
        ("import", ("os", None, None, None, None)),
        ("nobody.knows", ()),
    ],
)
def test_the_audit_hook_lets_through(
    world: World, monkeypatch: pytest.MonkeyPatch, event: str, args: tuple[object, ...]
) -> None:
    monkeypatch.chdir(world.root)
    world.audit_hook("here.example", "127.0.0.1", scratch=str(world.root.parent / "scratch"))(event, args)


def test_behind_the_wall_a_database_of_the_workspace_may_be_opened_since_it_cannot_be_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root)
    audit_hook = world.audit_hook(kernel_confined=True)
    audit_hook("sqlite3.connect", ("a.txt",))
    for path in ("../x.db", ".ctx/x.db"):
        with pytest.raises(PermissionError):
            audit_hook("sqlite3.connect", (path,))


def test_a_path_is_taken_from_the_folder_that_a_descriptor_leads_to(world: World, tmp_path: Path) -> None:
    audit_hook = world.audit_hook(scratch=str(tmp_path))
    inside, outside = (os.open(place, os.O_RDONLY) for place in (tmp_path, world.root))
    try:
        for event, args in (("os.remove", ("a.txt",)), ("os.mkdir", ("new", 0o777)), ("os.chmod", ("a.txt", 0))):
            audit_hook(event, (*args, inside))
            with pytest.raises(PermissionError):
                audit_hook(event, (*args, outside))
        with pytest.raises(PermissionError):
            audit_hook("os.rename", ("a.txt", "b.txt", inside, outside))
    finally:
        os.close(inside)
        os.close(outside)


def test_what_an_allowed_name_stands_for_may_be_connected_to(world: World) -> None:
    audit_hook = world.audit_hook("here.example")
    with pytest.raises(PermissionError):
        audit_hook("socket.connect", (None, ("10.0.0.1", 80)))
    resolve = audit_hook.wrap_getaddrinfo(
        lambda _host, port: [(2, 1, 6, "", ("10.0.0.1", port)), (10, 1, 6, "", ("::1", port, 0, 0))]
    )
    assert len(resolve("here.example", 80)) == 2
    audit_hook("socket.connect", (None, ("10.0.0.1", 80)))
    audit_hook("socket.connect", (None, ("::1", 80, 0, 0)))
