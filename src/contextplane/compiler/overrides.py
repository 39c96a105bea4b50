"""Overrides of a compile case (`--set`): each changes one value, named as a fact or by its place.

`request.context.refund_amount` is the name of a fact, `/request/input/context/refund_amount` its place in the case.
`known_places` are the places that a pack reads: the facts of its conditions, and the names that it looks up. In error
codes and JSON an override is called a knob.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import ContextPack
from contextplane.model.invoke import UserClaims
from contextplane.model.json.canonical import Json
from contextplane.model.json.parse import parse
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import Guardrail
from contextplane.model.suggestion import did_you_mean
from contextplane.model.value import Value
from contextplane.policy.bounds import permission_references, rule_references
from contextplane.policy.clock import LOCAL_CLOCK
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.logic.expression import variables

__all__ = [
    "ABSENT",
    "OPEN_OBJECTS",
    "Override",
    "OverrideInvalid",
    "apply_overrides",
    "fact_pointer",
    "guardrail_labels",
    "known_places",
    "pack_conditions",
    "parse_override",
    "put_value",
    "value_at",
]

_FACTS = {
    "request": ("request", "input"),
    "user": ("run_context", "user"),
    "agent": ("run_context", "agent"),
    "run.budget": ("run_context", "run_budget"),
    "run.metadata": ("run_context", "metadata"),
    "run.as_of": ("as_of",),
    "tenant_id": ("run_context", "tenant_id"),
    "intent": ("request", "input", "intent"),
    "safety_mode": ("run_context", "safety_mode"),
}
"""The path in a case of each fact that rules can read."""

_LINKED_PLACES = (
    ("/request/input/intent", "/run_context/intent"),
    ("/run_context/tenant_id", "/request/tenant_id"),
    ("/run_context/user/user_id", "/request/user/user_id"),
    ("/run_context/agent/agent_id", "/request/agent/agent_id"),
)
"""Values that a case has twice: both are changed, if both are present."""

OPEN_OBJECTS = ("/request/input/context", "/run_context/metadata", "/run_context/user")
"""Objects that may have members of any name. Elsewhere the form of the case decides which members exist."""

ABSENT = object()
"""The value of a place where there is nothing."""

_CONTEXT_NAMES = ("signals", "timezone", "currency", "region")
"""Members of `request.context` that every compile reads."""

_NO_JSON = frozenset({"json_malformed", "json_empty", "json_trailing_data"})
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,23}")
_EXAMPLE = "request.context.refund_amount=4200"


class OverrideInvalid(ContextPlaneError):
    """An override that names nothing, or whose value is not JSON or not allowed there."""

    code: ClassVar[str] = "knob_invalid"
    family: ClassVar[Family] = "usage"


class Override(Value, frozen=True):
    """A change of one value of a case: its name, its place, and the new value. Null removes a fact."""

    name: str
    at: str
    value: object

    @property
    def words(self) -> str:
        return f"{self.name}={msgspec.json.encode(self.value).decode()}"


def parse_override(text: str) -> Override:
    """Parse `PATH=VALUE`. The value is JSON: a text is in quotes."""
    name, equals, value_text = text.partition("=")
    if not name or not equals:
        raise OverrideInvalid("write PATH=VALUE", at=f"--set {text[:80]}", hint=f"such as --set {_EXAMPLE}")
    try:
        value = parse(value_text.encode()).value
    except ContextPlaneError as error:
        raise _value_error(name, value_text, error) from error
    except UnicodeEncodeError as error:
        raise OverrideInvalid("its value is no text", at=f"--set {name[:80]}", hint="write it as UTF-8") from error
    return Override(name=name, at=fact_pointer(name), value=value)


def _value_error(name: str, value_text: str, error: ContextPlaneError) -> OverrideInvalid:
    """The error for a value that is refused. One that is no JSON at all was probably meant as a text."""
    at = f"--set {name[:80]}"
    if error.code not in _NO_JSON:
        return OverrideInvalid(f"its value is refused: {error.message}", at=at, hint=error.hint or "write another one")
    shown = value_text if _WORD.fullmatch(value_text) else "..."
    return OverrideInvalid(
        "its value is not JSON",
        at=at,
        hint=f"""write true, false or a number as it is, a text in quotes: --set '{name[:60]}="{shown}"'""",
    )


def fact_pointer(name: str) -> str:
    """The JSON Pointer of a fact in a case. A name that begins with `/` is one already."""
    if name.startswith("/"):
        return name
    for fact, path in _FACTS.items():
        if name == fact or name.startswith(f"{fact}."):
            members = name.removeprefix(fact).split(".")[1:]
            if all(members) or not members:
                return pointer([*path, *members])
    if name in LOCAL_CLOCK:
        hint = """write the moment: --set 'run.as_of="2026-05-04T09:31:00Z"'"""
        raise OverrideInvalid("follows from the moment", at=f"--set {name}", hint=hint)
    raise OverrideInvalid(
        "names nothing in a request", at=f"--set {name[:80]}", hint=did_you_mean(name, _FACTS, "begin with a fact")
    )


def apply_overrides(value: Json, overrides: Iterable[Override], known: frozenset[str] | None) -> Json:
    """Apply the overrides to a case. `known`: the places that the pack reads; no other member may be new.

    None: any new member is accepted.
    """
    for override in overrides:
        value = put_value(value, override.at, override.value, known=known, name=override.name)
        for first, other in _LINKED_PLACES:
            if override.at == first and value_at(value, other) is not ABSENT:
                value = put_value(value, other, override.value)
    return value


def value_at(value: Json, at: str) -> object:
    """The value at a place; ABSENT if there is none."""
    here: object = value
    for step in _steps(at):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and _is_index(step, here):
            here = here[int(step)]
        else:
            return ABSENT
    return here


def put_value(value: Json, at: str, new: object, *, known: frozenset[str] | None = None, name: str = "") -> Json:
    """Copy a case with a new value at a place. Only the objects and lists on the path are copied."""
    steps = _steps(at)
    if not steps:
        raise _unknown_place(name or at, ())
    return _put(value, steps, 0, new, (at, known, name or at))


def _put(here: Json, steps: Sequence[str], n: int, new: object, target: tuple[str, frozenset[str] | None, str]) -> Json:
    at, known, name = target
    step, last = steps[n], n == len(steps) - 1
    if isinstance(here, list) and _is_index(step, here):
        changed = list(here)
        changed[int(step)] = new if last else _put(here[int(step)], steps, n + 1, new, target)  # type: ignore[call-overload]
        return changed
    if not isinstance(here, dict):
        raise _unknown_place(name, ())
    if step not in here and known is not None:
        _refuse_unknown(here, at, pointer(steps[:n]), known, name)
    inner = here.get(step, {})
    return {**here, step: new if last else _put(inner, steps, n + 1, new, target)}  # type: ignore[dict-item]


def _refuse_unknown(here: Mapping[str, Json], at: str, parent: str, known: frozenset[str], name: str) -> None:
    """Refuse a new member of an open object that the pack does not read. The form checks other objects."""
    for open_object in OPEN_OBJECTS:
        if (parent == open_object or parent.startswith(f"{open_object}/")) and not any(
            at == place or at.startswith(f"{place}/") or place.startswith(f"{at}/") for place in known
        ):
            beside = [place.removeprefix(f"{parent}/") for place in known if place.startswith(f"{parent}/")]
            raise _unknown_place(name, (*here, *beside))


def _unknown_place(name: str, beside: Iterable[str]) -> OverrideInvalid:
    last = name.replace("/", ".").rpartition(".")[2]
    hint = did_you_mean(last, set(beside), "name something that the request has, or that the pack looks at")
    return OverrideInvalid(
        "is not in the request, and the pack looks at nothing there", at=f"--set {name[:80]}", hint=hint
    )


def _is_index(step: str, here: Sequence[Json]) -> bool:
    """Whether a step is the index of an element. A step with too many digits is not parsed as a number."""
    return step.isascii() and step.isdecimal() and len(step) <= len(str(len(here))) and int(step) < len(here)


def _steps(at: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in at.split("/")[1:]]


def pack_conditions(pack: ContextPack) -> Iterator[Json]:
    """Yield every condition of a pack that a compile evaluates."""
    layer = pack.policy_layer
    for bundle in layer.policy_bundles:
        yield from (rule.condition for rule in bundle.policy_dsl.rules)
    yield from (gate.when for gate in layer.approval_gates if gate.when is not None)
    for guardrail in (*layer.guardrails.must_refuse, *layer.guardrails.must_escalate):
        if isinstance(guardrail, Guardrail) and guardrail.when is not None:
            yield guardrail.when


def guardrail_labels(pack: ContextPack) -> tuple[str, ...]:
    """The labels of all guardrails of a pack."""
    rails = pack.policy_layer.guardrails
    return tuple(
        guardrail.id if isinstance(guardrail, Guardrail) else guardrail
        for guardrail in (*rails.must_refuse, *rails.must_escalate)
    )


def known_places(pack: ContextPack) -> frozenset[str]:
    """The places in a case that the pack reads."""
    read = {path for condition in pack_conditions(pack) for path in variables(condition)} | set(SCOPE_FACTS.values())
    read.update(rule_references(pack.policy_layer), permission_references(pack.tooling_layer))
    required = {name for spec in pack.decision_layer.decision_specs for name in spec.required_evidence}
    context = {f"request.context.{name}" for name in (*_CONTEXT_NAMES, *guardrail_labels(pack), *required)}
    claims = {f"user.{name}" for name in UserClaims.__struct_fields__ if name != "further"}
    declared = {fact.path for entry in pack.policy_layer.request_facts or () for fact in entry.facts}
    return frozenset(_places(read | context | claims | declared))


def _places(names: set[str]) -> Iterator[str]:
    for name in names:
        try:
            yield fact_pointer(name)
        except OverrideInvalid:
            continue  # no fact, so no request can have it
