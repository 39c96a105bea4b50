"""Calls of earlier versions of the contract: each is refused with its new form, so that a client can mend itself."""

from collections.abc import Mapping

from contextplane.handoff.noting import nearest, shown
from contextplane.handoff.refusals import HandoffInvalid
from contextplane.model.canonical import Json

__all__ = ["INPUT_ACTIONS", "OUTPUT_ACTIONS", "refuse_legacy"]

INPUT_ACTIONS = ("list", "get", "write", "ttl", "delete")
OUTPUT_ACTIONS = ("list", "read")

CONTRACT = "document_full_replace"
_WRITE: dict[str, object] = {"action": "write", "required_fields": ["document"], "contract": CONTRACT}
_TTL: dict[str, object] = {"action": "ttl", "required_fields": ["id", "expected_revision"]}
_DELETE: dict[str, object] = {"action": "delete", "required_fields": ["id"]}
_READ: dict[str, object] = {"action": "read", "required_fields": ["id"]}
_EDITS = (
    "create",
    "upsert_section",
    "upsert_ref",
    "upsert_diagram",
    "delete_section",
    "delete_ref",
    "delete_diagram",
    "set_meta",
    "set_status",
)
_MAPPING: dict[str, dict[str, dict[str, object]]] = {
    "input": {**dict.fromkeys(_EDITS, _WRITE), "touch_ttl": _TTL, "delete_pack": _DELETE},
    "output": {"get": _READ},
}
# Fields of `write` that changed one thing at a time. All of them are part of the document now.
_GRANULAR = {
    "op": "document",
    "snapshot": "document",
    "section_key": "document.sections[].key",
    "section_title": "document.sections[].title",
    "section_description": "document.sections[].description",
    "section_order": "document.sections",
    "ref_key": "document.sections[].refs[].key",
    "ref_title": "document.sections[].refs[].title",
    "ref_why": "document.sections[].refs[].why",
    "path": "document.sections[].refs[].path",
    "line_start": "document.sections[].refs[].line_start",
    "line_end": "document.sections[].refs[].line_end",
    "group": "document.sections[].refs[].group",
    "diagram_key": "document.sections[].diagrams[].key",
    "mermaid": "document.sections[].diagrams[].mermaid",
    "diagram_why": "document.sections[].diagrams[].why",
    "title": "document.title",
    "brief": "document.brief",
    "tags": "document.tags",
    "ttl_minutes": "document.ttl_minutes",
    "status": "document.status",
}
_STILL = ("ttl_minutes", "status")  # of these, arguments of other actions
_PROFILES = {"full": "reviewer", "compact": "orchestrator"}


def refuse_legacy(tool: str, action: str, given: Mapping[str, Json]) -> None:
    """Refuse an action or a field that the contract does not have any more, and say what took its place."""
    if tool == "output" and "format" in given:
        raise _refused(
            "format is not supported: output is always markdown",
            tool=tool,
            action=action,
            field="format",
            unsupported_field="format",
            required_mode="markdown",
            replacement_hint="leave format out",
        )
    actions = INPUT_ACTIONS if tool == "input" else OUTPUT_ACTIONS
    if action not in actions:
        raise _no_action(tool, action, actions, given)
    if tool == "input":
        _refuse_granular(action, given)
    elif action == "read":
        _refuse_old_reading(given)


def _no_action(tool: str, action: str, actions: tuple[str, ...], given: Mapping[str, Json]) -> HandoffInvalid:
    instead = _MAPPING[tool].get(action)
    near = nearest(action, actions)
    told: dict[str, object] = {"requested_action": action[:60], "allowed_actions": list(actions), **_ops(given)}
    if instead is None:
        meant = f"; did you mean {near!r}?" if near else f"; use one of {', '.join(actions)}"
        return _refused(f"unknown action {shown(action)}{meant}", tool=tool, action="unknown", **told)
    if tool == "output":
        told["replacement"] = _reading(given)
    return _refused(
        f"action {action!r} is not supported any more: use action='{instead['action']}'",
        tool=tool,
        action="unsupported",
        **told,
        legacy_mapping=instead,
    )


def _ops(given: Mapping[str, Json]) -> dict[str, object]:
    """With an `op`, which ones are left: none, for the document says it all."""
    return {"requested_op": given["op"], "allowed_ops": []} if "op" in given else {}


def _refuse_granular(action: str, given: Mapping[str, Json]) -> None:
    if action != "write" and "op" not in given:
        return
    for name, instead in _GRANULAR.items():
        # Null is what some clients send for every argument of the schema that they leave out. The rest is not there.
        if name in given and (given[name] is not None or name not in _STILL):
            raise _refused(
                f"{name} is not supported any more: write takes one whole document (action='write', {instead})",
                tool="input",
                action=action,
                requested_field=name,
                unsupported_field=name,
                supported_field="document",
                replacement=instead,
                contract=CONTRACT,
                allowed_actions=list(INPUT_ACTIONS),
                **_ops(given),
                legacy_mapping=_mapped_op(given.get("op")),
            )


def _mapped_op(op: Json) -> dict[str, object]:
    return _MAPPING["input"].get(op, _WRITE) if type(op) is str else _WRITE


def _refuse_old_reading(given: Mapping[str, Json]) -> None:
    for name, instead in (("mode", ["profile"]), ("cursor", ["page_token"]), ("match", ["contains"])):
        if name in given:
            fields: dict[str, object] = {"supported_field": instead[0], "supported_fields": instead}
            raise _refused(
                f"{name} is not supported any more: use {instead[0]}",
                tool="output",
                action="read",
                requested_field=name,
                unsupported_field=name,
                **fields,
                replacement=_reading(given),
            )


def _reading(given: Mapping[str, Json]) -> dict[str, object]:
    """The whole call in its new form."""
    told: dict[str, object] = {"action": "read"}
    told |= {name: given[name] for name in ("id", "name", "profile", "limit") if type(given.get(name)) in {str, int}}
    mode = given.get("mode")
    if type(mode) is str and mode in _PROFILES:
        told["profile"] = _PROFILES[mode]
    if given.get("cursor") is not None:
        told["page_token"] = "<next_page_token of the LEGEND>"  # noqa: S105  it is a placeholder
    if type(given.get("match")) is str:
        told["contains"] = given["match"]
    return told


def _refused(message: str, **details: object) -> HandoffInvalid:
    return HandoffInvalid(message, hint="details has the new form", details=details)
