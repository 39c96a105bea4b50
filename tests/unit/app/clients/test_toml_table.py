"""TOML is edited as text: one table comes or goes, and nothing else changes."""

import pytest

from contextplane.app.clients.toml_table import TomlTextInvalid, append_table, parse_toml, remove_table

PATH = ("mcp_servers", "context-pack")
ENTRY = {"command": 'C:\\"ctx"', "args": ["mcp"], "enabled": True}


@pytest.mark.parametrize(
    "text",
    [
        'model = "x" # why\n',
        "[mcp_servers.other]\ncommand = 'y'\n\n# about the last\n[last]\nlist = [\n  1, # two\n]\n",
        'a = 1\r\n\r\n[b]\r\nc = """\r\n[mcp_servers.no]\r\n"""\r\n',
    ],
)
def test_a_table_is_appended_and_removing_it_restores_every_byte(text: str) -> None:
    added = append_table(text, PATH, ENTRY)
    assert added.startswith(text)
    before = parse_toml(text)
    assert parse_toml(added) == before | {"mcp_servers": before.get("mcp_servers", {}) | {"context-pack": ENTRY}}
    assert remove_table(added, PATH) == text


def test_a_table_in_the_middle_goes_with_its_sub_tables_and_the_comments_of_others_stay() -> None:
    text = (
        "# mine\na = 1\n\n"
        '[ mcp_servers . "context-pack" ] # ours\n# about the command\ncommand = "ctx"\n'
        '[mcp_servers.context-pack.env]\nA = "1"\n\n# about b\n[b]\nc = 1\n'
    )
    assert remove_table(text, PATH) == "# mine\na = 1\n\n# about b\n[b]\nc = 1\n"


def test_a_document_with_nothing_else_is_empty_afterwards() -> None:
    assert remove_table(append_table("", PATH, ENTRY), PATH) is None


def test_what_is_not_toml_is_refused() -> None:
    with pytest.raises(TomlTextInvalid, match="not TOML"):
        parse_toml("a = ")
