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
    """One call. A param may be an expression over the facts and the results of the steps it depends on."""

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
