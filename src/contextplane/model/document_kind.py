"""Tells what a JSON document is by its members, so that a wrong document is named in the error."""

from contextplane.model.json.canonical import Json

__all__ = ["ENVELOPE", "document_kind", "is_envelope"]

ENVELOPE = "an invokeAgent envelope"

_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a context pack", ("pack_meta",)),
    ("an overlay", ("overlay_id",)),
    ("a decision catalog", ("catalog_id",)),
    ("a compiled context", ("compiled_prompt",)),
    ("a request with its run context", ("request", "run_context")),
    ("a request with its run context", ("request", "environment")),
    (ENVELOPE, ("input", "context_pack_refs")),
    (ENVELOPE, ("input", "request_id")),
    ("a run context", ("safety_mode", "run_budget")),
    ("a table of tests", ("pack", "cases")),
    ("the expected result of a golden case", ("manifests", "recorded")),
    ("the expected result of a golden case", ("refused", "recorded")),
    ("a description of an environment", ("approval_ceiling",)),
    ("a description of an environment", ("endpoints",)),
    ("a signed DSSE envelope", ("payloadType", "signatures")),
    ("a JSON Schema", ("$schema", "$id")),
    ("a SARIF log", ("$schema", "runs")),
    ("an OpenAPI description", ("openapi",)),
    ("a DecisionRecord", ("record_id", "decision_key")),
    ("an execution pack", ("system_prompt", "hash")),
    ("an execution log", ("system_prompt", "steps")),
    ("an execution log", ("model", "steps")),
    ("an execution log", ("model", "prompts")),
    ("a handoff pack", ("sections", "schema_version")),
    ("a handoff document", ("sections", "title")),
    ("a handoff document", ("sections", "name")),
)
"""A kind of document, and members that only documents of this kind have together; the first match counts."""


def document_kind(value: Json) -> str | None:
    """Return what a document is, with its article; None if its members do not tell."""
    if not isinstance(value, dict):
        return None
    return next((kind for kind, members in _KINDS if all(name in value for name in members)), None)


def is_envelope(value: Json) -> bool:
    """Whether a document is a bare invokeAgent envelope, without a run context around it."""
    return document_kind(value) == ENVELOPE
