"""A page of a pack in its less usual forms: little said, refs that moved, files that cannot be read, the list."""

import os
from pathlib import Path

import pytest

from contextplane.adapters.files.workspace import FileSources
from contextplane.handoff.page import PageQuery, list_markdown
from contextplane.handoff.source import SourceReader
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import Ref
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.handoff.builders import (
    NOW,
    FixedSources,
    a_pack,
    a_ref,
    a_section,
    as_it_was,
    legend,
    page,
)

CODE = [f"    step_{number}()" for number in range(1, 21)]


def test_a_pack_that_says_little_is_shown_all_the_same() -> None:
    text = page(a_pack(title=None)).text
    assert "# Context pack: Untitled\n" in text
    assert "- scope: scope is not explicitly documented in pack brief\n" in text
    assert "- verdict_status: status=draft, freshness_state=fresh, verdict=none\n" in text
    assert "- top_risks:\n  - none explicitly signaled\n- top_gaps:\n  - none explicitly tagged\n" in text
    assert "  - sections: none\n  - refs_on_page: none\n" in text
    assert text.endswith("\n_No chunks matched current filters._\n")


def test_without_a_brief_the_scope_is_the_sections() -> None:
    pack = a_pack(*(a_section(f"s{number}") for number in range(7)))
    assert "- scope: sections in scope: S0, S1, S2, S3, S4\n" in page(pack).text


def test_a_section_with_a_title_only_is_shown() -> None:
    assert page(a_pack(a_section("later", title="Later"))).text.endswith("\n## Later [later]\n")


@proves("handoff-pack:paging:legend-warning", case="expired")
@proves(
    "handoff-pack:paging:legend-freshness",
    "handoff-pack:paging:legend-profile",
    "handoff-pack:paging:legend-selected-revision-and-status",
    "handoff-pack:tool:legend-selected-by",
    "handoff-pack:tool:legend-selected-revision",
    "handoff-pack:tool:legend-selected-status",
    case="*",
)
@pytest.mark.parametrize(
    ("expires_at", "remaining", "state", "warning"),
    [
        ("2026-05-04T12:00:00Z", "3h", "fresh", None),
        ("2026-05-04T09:05:00Z", "5m", "expiring_soon", "expiring soon \u2014 refresh or extend ttl"),
        ("2026-05-04T08:59:00.25Z", "expired", "expired", "expired \u2014 treat as stale evidence"),
    ],
    ids=["fresh", "expiring soon", "expired"],
)
def test_the_legend_says_how_fresh_the_pack_is_and_how_it_was_chosen(
    expires_at: str, remaining: str, state: str, warning: str | None
) -> None:
    shown = page(a_pack(expires_at=expires_at, status="finalized"), PageQuery(profile="reviewer"))
    fields = legend(shown.text)
    assert (fields["ttl_remaining"], fields["freshness_state"], fields.get("warning")) == (remaining, state, warning)
    assert fields["expires_at"] == expires_at.replace("Z", "+00:00")
    assert fields["profile"] == "reviewer"
    assert (fields["selected_by"], fields["selected_revision"], fields["selected_status"]) == (
        "exact_id",
        "3",
        "finalized",
    )
    assert (shown.structured["warning"], shown.structured["expires_at"]) == (warning, expires_at)


@proves("handoff-pack:tool:compact-keeps-stale-markers")
@pytest.mark.parametrize("profile", ["orchestrator", "executor", "reviewer"])
def test_refs_that_are_not_where_they_were_say_so(profile: str) -> None:
    refs = [
        a_ref("as-it-was", path="same", start=3, end=4, lines=CODE),
        a_ref("moved", path="longer", start=3, end=4, lines=CODE),
        a_ref("changed", path="edited", start=3, end=4, lines=CODE),
        a_ref("gone", path="emptied", start=3, end=4, lines=CODE),
        a_ref("missing", path="nowhere", start=3, end=4, lines=CODE),
    ]
    files = {
        "same": CODE,
        "longer": ["import new", *CODE],
        "edited": [*CODE[:2], "one", "two", "three", *CODE[4:]],
        "emptied": [],
    }
    reader = SourceReader(FixedSources({name: "\n".join(lines).encode() for name, lines in files.items()}), 10_000)
    pack = a_pack(a_section("findings", refs=refs))
    text = page(pack, PageQuery(profile=profile), locate=reader).text  # type: ignore[arg-type]
    shown = {part.partition(" ")[0]: part for part in text.split("\n#### ")[1:]}
    assert "- lines: 3-4\n" in shown["as-it-was"]
    assert "- lines: 3-4 (moved: now 4-5)\n" in shown["moved"]
    assert "- lines: 3-4 (changed: now 3-5)\n" in shown["changed"]
    assert "> stale ref: these lines changed; in their place are now lines 3-5\n" in shown["changed"]
    assert "> stale ref: the lines are no longer in the file\n" in shown["gone"]
    assert "> stale ref: the file is missing\n" in shown["missing"]
    assert "stale" not in shown["as-it-was"] + shown["moved"]
    if profile == "reviewer":
        assert "   4:     step_3()\n   5:     step_4()\n" in shown["moved"]
        assert "   3: one\n   4: two\n   5: three\n" in shown["changed"]
        assert "```" not in shown["gone"] + shown["missing"]
    else:
        assert "```" not in text
        assert "- top_risks:\n  - stale refs: changed, gone, missing\n" in text


def test_a_bad_file_does_not_spoil_the_page(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    os.mkfifo(root / "pipe")
    (root / "binary").write_bytes(b"\xff\xfe")
    (root / "large").write_bytes(b"x" * 2000)
    (tmp_path / "secret").write_text("secret\n", encoding="utf-8")
    (root / "link").symlink_to("../secret")
    (root / "good").write_text("all is well\n", encoding="utf-8")
    names = ["binary", "folder", "large", "link", "pipe", "missing", "good"]
    pack = a_pack(a_section("findings", refs=[a_ref(name, path=name) for name in names]))
    reader = SourceReader(FileSources(str(root)), 1000)
    shown = page(pack, PageQuery(profile="reviewer"), locate=reader)
    chunks = shown.structured["chunks"]
    assert isinstance(chunks, list)
    states = {chunk["key"]: chunk["state"] for chunk in chunks if isinstance(chunk, dict)}
    assert states == dict.fromkeys(names, "unreadable") | {"good": "unanchored"}
    assert shown.text.count("> stale ref: ") == 6
    assert "   1: all is well\n" in shown.text
    assert "secret" not in shown.text


@cases("query", [PageQuery(limit=3, offset=2), PageQuery(contains="TODO"), PageQuery(profile="reviewer", limit=1)])
def test_the_lines_of_every_ref_are_looked_at_once_whatever_is_shown(query: PageQuery) -> None:
    located: list[str] = []

    def locate(ref: Ref) -> object:
        located.append(ref.key)
        return as_it_was(ref)

    refs = [a_ref(f"ref-{number}", why="TODO: mend" if number > 7 else None) for number in range(10)]
    page(a_pack(a_section("findings", refs=refs)), query, locate=locate)  # type: ignore[arg-type]
    assert located == [ref.key for ref in refs]


@proves("handoff-pack:tool:warning-expiring-soon", "handoff-pack:tool:warning-expired")
def test_the_list_has_a_line_for_each_pack_with_its_freshness() -> None:
    def row(title: str | None, expires: str, name: str | None = None) -> HandoffRow:
        return HandoffRow(
            id=HandoffId("pk_abcd2345"),
            name=name,
            title=title,
            brief=None,
            status="draft",
            revision=2,
            digest=Digest.of(b""),
            updated=NOW,
            expires=Timestamp.parse(expires),
        )

    rows = [
        row("Refund\n- flow", "2026-05-06T10:00:00Z"),
        row(None, "2026-05-04T09:05:00Z", "refund-flow"),
        row(None, "2026-05-04T08:00:00Z"),
    ]
    assert list_markdown(rows, NOW) == (
        "# Context packs\n\n"
        "- `pk_abcd2345` \u2014 Refund - flow (revision `2`, ttl `2d`, freshness `fresh`) "
        "(status `draft`, expires_at `2026-05-06T10:00:00+00:00`)\n"
        "- `pk_abcd2345` \u2014 refund-flow (revision `2`, ttl `5m`, freshness `expiring_soon`) "
        "[warning: expiring soon \u2014 refresh or extend ttl] "
        "(status `draft`, expires_at `2026-05-04T09:05:00+00:00`)\n"
        "- `pk_abcd2345` \u2014 Untitled (revision `2`, ttl `expired`, freshness `expired`) "
        "[warning: expired \u2014 treat as stale evidence] "
        "(status `draft`, expires_at `2026-05-04T08:00:00+00:00`)\n"
    )
    assert list_markdown([], NOW) == "No context packs found."
    assert legend(page(a_pack(expires_at="2026-05-04T08:59:00Z")).text)["warning"].startswith("expired")
    assert legend(page(a_pack(expires_at="2026-05-04T09:01:00Z")).text)["warning"].startswith("expiring soon")
