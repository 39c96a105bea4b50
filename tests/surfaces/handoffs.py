"""A folder for handoff packs with code and a reference root; handoff documents; parts of a page."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from contextplane.model.timestamp import Timestamp
from tests.surfaces.agents import Agent, serving
from tests.unit.handoff.reference_root import ReferencePacks

__all__ = ["KNOWN", "Place", "content", "finding", "later", "legend", "section", "whole"]

KNOWN = "pk_abcd2345"
"""The id that the contract's examples use."""

QA = {"key": "qa", "title": "QA", "description": "verdict: pass"}


class Place:
    """A folder with a `src/auth.py` of 40 lines, and the root of the reference server below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "src").mkdir()
        self.code = folder / "src" / "auth.py"
        self.code.write_text("".join(f"def step_{n}(token): return {n}\n" for n in range(1, 41)), encoding="utf-8")

    def serving(self, **env: str) -> AbstractContextManager[Agent]:
        return serving(self.folder, {f"CONTEXT_PACK_{name.upper()}": value for name, value in env.items()})

    def reference(self) -> ReferencePacks:
        return ReferencePacks(self.folder / ".agents" / "mcp" / "context_pack")

    def now(self) -> str:
        """The time by the server's clock: tests do not use their own."""
        with serving(self.folder) as agent:
            return str(agent.does("write", document={"sections": []}, validate_only=True)["updated_at"])


def later(moment: str, seconds: float) -> str:
    """The time `seconds` after a moment, or before it if negative."""
    return str(Timestamp.parse((datetime.fromisoformat(moment) + timedelta(seconds=seconds)).isoformat()))


def finding(n: int, **fields: object) -> dict[str, Any]:
    """A ref to line `n`."""
    return {"key": f"step-{n}", "path": "src/auth.py", "line_start": n, "line_end": n, **fields}


def section(key: str, **fields: object) -> dict[str, Any]:
    return {"key": key, "title": key.title(), **fields}


def whole(refs: int = 1, **fields: object) -> dict[str, Any]:
    """A document that may be finalized."""
    findings = section("findings", refs=[finding(n) for n in range(1, refs + 1)])
    return {"title": "Login bug", "sections": [section("scope", description="The check."), findings, QA], **fields}


def legend(page: str) -> Mapping[str, str]:
    """The fields of a page's LEGEND."""
    assert page.startswith("[LEGEND]\n# Context pack: ")
    head, separator, _ = page.partition("\n\n[CONTENT]\n")
    assert separator
    return dict(line.removeprefix("- ").split(": ", 1) for line in head.splitlines() if line.startswith("- "))


def content(page: str) -> str:
    """The text of a page below its LEGEND."""
    return page.partition("\n\n[CONTENT]\n")[2]
