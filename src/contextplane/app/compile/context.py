"""Compiles a request from a pack, and gives a surface what it shows of the compiled context."""

from typing import TYPE_CHECKING, Literal

from contextplane.compiler.envelope import Assumption, CompletedCase, complete_case, pin_request
from contextplane.compiler.overrides import Override, OverrideInvalid, parse_override, value_at
from contextplane.compiler.report import ContextItem, ItemChange
from contextplane.compiler.source import CompiledCase, PackSource, compile_case, list_all_items
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.tokens import TokenCounterName

if TYPE_CHECKING:
    from contextplane.compiler.chat import ChatRequest

__all__ = [
    "Assumption",
    "CompiledCase",
    "CompletedCase",
    "ContextItem",
    "ItemChange",
    "Override",
    "OverrideInvalid",
    "PackSource",
    "chat_body",
    "compile_case",
    "complete_case",
    "count_with",
    "list_all_items",
    "parse_override",
    "pin_request",
    "prompt_text",
    "value_at",
]


def count_with(source: PackSource, name: TokenCounterName) -> PackSource:
    """Return the source with another token counter than the pack's."""
    from contextplane.app.token_counters import load_counter

    return PackSource(source.pack, source.lineage, source.where, load_counter(name))


def prompt_text(context: CompiledContext) -> str:
    """Return the exact text that a model is given."""
    from contextplane.compiler import prompt

    return prompt.prompt_text(context.compiled_prompt)


def chat_body(context: CompiledContext, form: Literal["openai", "anthropic"]) -> "ChatRequest":
    """Return the request body for a chat API of this form."""
    from contextplane.compiler.chat import anthropic_chat, openai_chat

    return openai_chat(context) if form == "openai" else anthropic_chat(context)
