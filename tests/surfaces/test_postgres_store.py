"""A store whose catalog is in PostgreSQL: `CTX_DATABASE_URL` and the same verbs."""

import shutil
from pathlib import Path
from subprocess import PIPE, Popen

import msgspec
import pytest

from contextplane.adapters.postgres.connection import connect
from tests.postgres import shared_url
from tests.surfaces.agents import DOCUMENT, serving
from tests.surfaces.commands import COMMAND, Result, child_environment, ctx
from tests.surfaces.handoff_store import json_answer
from tests.surfaces.sample import one_error_line

LOG = {
    "model": {"identifier": "model-x"},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "Please refund the order 881"}],
    "steps": [{"type": "tool_call", "tool": "lookup_order", "parameters": {"order": 881}, "output": "paid"}],
    "outputs": [{"name": "report.md", "content": "# Refunded\n"}],
    "environment": {"os": "linux", "runtime": "python3.11"},
}


class Place:
    """A folder, and `ctx` there with the database named."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"CTX_DATABASE_URL": shared_url()}

    def ctx(self, *args: str, data: bytes | None = None) -> Result:
        return ctx(*args, cwd=self.folder, env=self.env, input=data)

    def pack(self) -> str:
        return str(json_answer(self.ctx("pack", "-", "--json", data=msgspec.json.encode(LOG)))["ref"])

    def sql(self, statement: str) -> None:
        store_id = msgspec.json.decode((self.folder / ".ctx" / "config.json").read_bytes())["store_id"]
        with connect(shared_url()) as db:
            db.execute(statement.replace("OURS", store_id.replace("store_", "ctx_")).encode())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    assert place.ctx("init").status == 0
    return place


def test_runs_are_packed_listed_found_checked_and_collected(place: Place) -> None:
    assert not (place.folder / ".ctx" / "catalog.db").exists()
    pack = place.pack()
    answer = json_answer(place.ctx("status", "--json", "--tables"))
    assert (answer["execution_packs"], answer["schema"]) == (1, 5)
    assert {"name": "event", "role": "truth"}.items() <= next(
        t for t in answer["tables"] if t["name"] == "event"
    ).items()
    assert [row["ref"] for row in json_answer(place.ctx("log", "--json"))["packs"]] == [pack]
    (hit,) = json_answer(place.ctx("search", '"refund the ord"*', "--json"))["hits"]
    assert hit["ref"] == pack
    assert json_answer(place.ctx("fsck", "--json"))["sound"] is True
    assert place.ctx("gc", "--grace", "0s").status == 0
    assert json_answer(place.ctx("fsck", "--rebuild", "--json"))["sound"] is True
    assert place.ctx("init").status == 0


def test_handoff_packs_are_written_and_read(place: Place) -> None:
    (place.folder / "src").mkdir()
    (place.folder / "src" / "auth.py").write_text("one\ntwo\nthree\n", encoding="utf-8")
    with serving(place.folder, place.env) as agent:
        written = agent.does("write", document=DOCUMENT)
    (row,) = json_answer(place.ctx("handoff", "list", "--query", "LOGIN", "--json"))["packs"]
    assert row["id"] == written["id"]
    assert "expiry ignored" in place.ctx("handoff", "read", row["id"]).out
    assert json_answer(place.ctx("fsck", "--json"))["sound"] is True


def test_several_that_make_a_store_at_once_make_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    env = child_environment(place.env)
    running = [Popen([COMMAND, "init", "--json"], cwd=tmp_path, env=env, stdout=PIPE, stderr=PIPE) for _ in range(4)]
    ended = [child.communicate() for child in running]
    assert [err for _, err in ended] == [b""] * 4
    store_ids = {msgspec.json.decode(out)["store_id"] for out, _ in ended}
    assert store_ids == {json_answer(place.ctx("status", "--json"))["store_id"]}


def test_a_store_keeps_its_catalog_where_it_is(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    for verb in (["status"], ["fsck", "--rebuild"], ["init"]):
        one_error_line(ctx(*verb, cwd=place.folder), 14, "catalog_elsewhere")
    assert not (place.folder / ".ctx" / "catalog.db").exists()
    other = Place(tmp_path_factory.mktemp("in_a_file"))
    assert ctx("init", cwd=other.folder).status == 0
    for verb in (["status"], ["fsck", "--rebuild"]):
        one_error_line(other.ctx(*verb), 14, "catalog_elsewhere")
    (other.folder / ".ctx" / "config.json").unlink()
    one_error_line(other.ctx("init"), 14, "catalog_elsewhere")
    assert ctx("init", cwd=other.folder).status == 0


def test_a_catalog_that_is_gone_or_damaged_is_never_begun_anew(place: Place) -> None:
    place.sql("DROP TRIGGER event_is_never_changed ON OURS.event")
    report = json_answer(place.ctx("fsck", "--json"), 1)
    assert [(finding["state"], finding["what"]) for finding in report["findings"]] == [("corrupt", "catalog")]
    one_error_line(place.ctx("fsck", "--rebuild"), 14, "catalog_corrupt")
    place.sql("DROP SCHEMA OURS CASCADE")
    one_error_line(place.ctx("fsck", "--rebuild"), 14, "catalog_missing")
    one_error_line(place.ctx("init"), 14, "catalog_missing")


def test_a_database_that_is_no_address_or_out_of_reach_is_told_without_its_password(place: Place) -> None:
    for url, status, code in (
        ("sqlite:///secret", 2, "database_url_invalid"),
        ("postgresql://me:secret@/db?host=/nowhere", 1, "catalog_failed"),
    ):
        place.env = {"CTX_DATABASE_URL": url}
        assert "secret" not in one_error_line(place.ctx("status"), status, code)


def test_without_the_driver_a_named_database_is_refused_and_a_file_needs_none(place: Place) -> None:
    hidden = place.folder / "hidden"
    (hidden / "psycopg").mkdir(parents=True)
    (hidden / "psycopg" / "__init__.py").write_text("raise ImportError('no libpq')", encoding="utf-8")
    without = {"PYTHONPATH": str(hidden)}
    one_error_line(ctx("status", cwd=place.folder, env=place.env | without), 1, "database_driver_missing")
    shutil.rmtree(place.folder / ".ctx")
    assert ctx("init", cwd=place.folder, env=without).status == 0
    assert ctx("status", cwd=place.folder, env=without).status == 0
