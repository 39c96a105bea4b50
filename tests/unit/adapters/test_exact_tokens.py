"""Exact token counters: tiktoken counts, its table is checked first, and nothing takes their place."""

import hashlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from contextplane.adapters import exact_tokens
from contextplane.adapters.exact_tokens import TokensUnavailable, load_exact_tokens
from contextplane.app.token_counters import choose_counter, load_counter
from contextplane.compiler.compile import compile_draft
from contextplane.compiler.errors import TokensNotGiven
from contextplane.compiler.inputs import read_request, read_run_context
from contextplane.model.tokens import APPROX4, CALIBRATED1
from tests.unit.compiler.scenario import compile_scenario, inputs, view_of

TABLE = b"a table"
NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""What tiktoken calls the table of o200k_base."""


class Words:
    """Stands in for an encoding of tiktoken: a token for every word."""

    def encode_ordinary(self, text: str) -> list[int]:
        return [*range(len(text.split()))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("tiktoken")
    module.get_encoding = lambda name: {"o200k_base": Words()}[name]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiktoken", module)
    monkeypatch.setitem(exact_tokens._DIGESTS, "o200k_base", hashlib.sha256(TABLE).hexdigest())
    (tmp_path / NAME).write_bytes(TABLE)
    return tmp_path


def test_the_encoding_counts_and_its_name_is_in_the_ledger(folder: Path) -> None:
    tokens = load_exact_tokens("o200k_base", str(folder))
    assert tokens.count("one two three") == 3
    context = compile_scenario(tokens=tokens)
    assert context.context_ledger.token_counter == tokens.name == load_exact_tokens("o200k_base", str(folder)).name
    estimated = compile_scenario().context_ledger
    assert context.context_ledger.compiled_context_hash != estimated.compiled_context_hash


@pytest.mark.parametrize(("content", "words"), [(None, "has none"), (b"another", "has another one")])
def test_a_table_that_is_missing_or_altered_is_refused(folder: Path, content: bytes | None, words: str) -> None:
    if content is None:
        (folder / NAME).unlink()
    else:
        (folder / NAME).write_bytes(content)
    with pytest.raises(TokensUnavailable, match=words) as refused:
        load_exact_tokens("o200k_base", str(folder))
    assert refused.value.code == "tokens_unavailable"
    assert "calibrated1" in (refused.value.hint or "")


def test_without_a_folder_or_without_tiktoken_nothing_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    with pytest.raises(TokensUnavailable, match="names no folder"):
        load_counter("o200k_base")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    with pytest.raises(TokensUnavailable, match="cannot be loaded") as refused:
        load_counter("o200k_base")
    assert "pip install 'contextplane[tokens]'" in (refused.value.hint or "")


def test_the_counter_is_the_one_asked_for_else_of_the_pack_else_the_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    plain, own = (view_of(inputs(pack=change)).pack for change in ({}, {"/pack_meta/token_counter": "o200k_base"}))
    assert choose_counter(plain) is CALIBRATED1
    assert choose_counter(plain, "approx4") is APPROX4
    assert choose_counter(own).name == "o200k_base"
    assert choose_counter(own, "calibrated1") is CALIBRATED1


def test_a_pack_that_names_a_counter_is_compiled_with_it_or_not_at_all() -> None:
    estimates = compile_context_of({"/pack_meta/token_counter": "approx4"})
    assert estimates == "approx4"
    with pytest.raises(TokensNotGiven) as refused:
        compile_context_of({"/pack_meta/token_counter": "cl100k_base"})
    assert refused.value.at == "pack#/pack_meta/token_counter"


def compile_context_of(changes: dict[str, str]) -> str | None:
    plain = inputs(pack=changes)
    run, request = read_run_context(plain["run_context"]), read_request(plain["request"])
    return compile_draft(view_of(plain), run, request).seal.context_ledger.token_counter
