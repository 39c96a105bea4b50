"""The two blocks that every compiled context has: the business from the pack, the session from the request."""

from contextplane.compiler.blocks import data_block, instruction_block
from contextplane.compiler.draft import Inputs
from contextplane.compiler.quoting import quoted, quoted_json
from contextplane.model.context_block import ContextBlock
from contextplane.model.context_ledger import EnvironmentValue

__all__ = ["business_block", "session_block"]


def business_block(inputs: Inputs) -> ContextBlock:
    """What the business does and never does. Nothing of a single request stands in it."""
    pack = inputs.view.pack
    return instruction_block(
        "biz_summary",
        "business",
        inputs.view.business,
        inputs.tokens,
        classification=pack.pack_meta.data_classification,
        refs=(f"{inputs.view.ref}#business_context",),
    )


def session_block(inputs: Inputs, environment: dict[str, EnvironmentValue]) -> ContextBlock:
    """What the request says besides its message, and where it takes place."""
    said = inputs.request.input
    lines = [f"{name}: {quoted(one.value)}" for name, one in environment.items()]
    if said.channel is not None:
        lines.append(f"channel: {quoted(said.channel)}")
    if inputs.run_context.user.role is not None:
        lines.append(f"user role: {quoted(inputs.run_context.user.role)}")
    if said.context:
        lines.append(f"request context: {quoted_json(said.context)}")
    return data_block(
        "session",
        "session",
        "\n".join(lines),
        inputs.tokens,
        classification=inputs.view.pack.pack_meta.data_classification,
        refs=("request",),
    )
