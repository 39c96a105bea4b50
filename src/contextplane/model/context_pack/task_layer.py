"""`task_layer`, the optional eleventh layer: the plans that the deterministic planner follows."""

from typing import Annotated, Any

from msgspec import Meta, field

from contextplane.model.context_pack.terms import Identifier, Names
from contextplane.model.value import Document

__all__ = ["TaskLayer", "TaskStep", "TaskTemplate"]

ToolName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\.[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z",
        description="adapter_id.capability",
    ),
]


class TaskStep(Document, frozen=True, omit_defaults=True):
    """One call. What is an object with one key, in a param or within one, is an expression: it is computed.

    It reads the facts, and as `results.<step id>` what the steps gave that this one depends on. All else is handed over
    as it stands.
    """

    id: Identifier
    tool: ToolName
    params: dict[str, Any] = field(default_factory=dict)
    depends_on: Names = ()


class TaskTemplate(Document, frozen=True):
    """The steps towards one decision for one intent."""

    template_id: Identifier
    intent: Identifier
    decision_key: Identifier
    steps: Annotated[tuple[TaskStep, ...], Meta(min_length=1)]


class TaskLayer(Document, frozen=True):
    task_templates: tuple[TaskTemplate, ...] = ()
