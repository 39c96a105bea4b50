"""The page about trust against the code: its codes are those of errors, and its table has every role."""

import re
from pathlib import Path

from contextplane.app.registry import memory
from contextplane.app.registry.key_changes import ROLES
from contextplane.registry import continuity, stream_heads
from contextplane.trust import keyring_stream, merkle_log, trust_root
from docs.generate import error_classes
from tests.support.cases import cases

PAGE = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
CODES = {cls.code for cls in error_classes()}
OTHER_NAMES = {"owner_role", "support_ops", "tenant_acme_prod", "tenant_globex", "registry_attacks"}
MODULES = {module.__name__ for module in (continuity, keyring_stream, memory, merkle_log, stream_heads, trust_root)}
REFUSALS = [
    cls.code
    for cls in error_classes()
    if cls.__module__ in MODULES and cls.family == "untrusted" and cls.code != "registry_memory_invalid"
]


def test_every_code_on_the_page_is_one_of_an_error() -> None:
    named = {*re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`", PAGE)}
    assert named - OTHER_NAMES <= CODES
    assert len(named) > 40


@cases("code", REFUSALS)
def test_every_refusal_of_a_registry_is_on_the_page(code: str) -> None:
    assert f"`{code}`" in PAGE


def test_the_table_of_roles_has_every_role() -> None:
    table = PAGE.partition("| role | allows | reaches |\n")[2].partition("\n\n")[0]
    roles = {role for row in table.splitlines() for role in re.findall(r"`([a-z:<_>]+)`", row.split(" | ")[0])}
    assert roles == {*ROLES, "tenant:<tenant_id>", "environment:<name>"}
