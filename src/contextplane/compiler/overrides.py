"""Knobs: one value of a compile case changed, by the name that rules read it under, or by its place in the document.

`request.context.refund_amount` is what a rule calls it, `/request/input/context/refund_amount` where it stands.

What a pack looks at in a request: the facts that its conditions read, and the names that it looks up.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec

from contextplane.authoring.suggest import nearest
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import ContextPack, Guardrail
from contextplane.model.invoke import UserClaims
from contextplane.model.json.canonical import Json
from contextplane.model.json.parse import parse
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value
from contextplane.policy.facts import MATCHED
from contextplane.policy.logic.expression import variables

__all__ = [
    "ABSENT",
    "OPEN",
    "Knob",
    "KnobInvalid",
    "conditions_of",
    "fact_at",
    "knob_of",
    "known_places",
    "labels_of",
    "put",
    "turned",
    "value_at",
]

_FACTS = {
    "request": ("request", "input"),
    "user": ("run_context", "user"),
    "agent": ("run_context", "agent"),
    "run.budget": ("run_context", "run_budget"),
    "run.metadata": ("run_context", "metadata"),
    "tenant_id": ("run_context", "tenant_id"),
    "intent": ("request", "input", "intent"),
    "safety_mode": ("run_context", "safety_mode"),
}
"""Where each fact that rules can read stands in a case."""

_TOGETHER = (
    ("/request/input/intent", "/run_context/intent"),
    ("/run_context/tenant_id", "/request/tenant_id"),
    ("/run_context/user/user_id", "/request/user/user_id"),
    ("/run_context/agent/agent_id", "/request/agent/agent_id"),
)
"""What a case says twice is changed in both places, where both are there."""

OPEN = ("/request/input/context", "/run_context/metadata", "/run_context/user")
"""Objects that may have members of any name; elsewhere the form of the case tells what there is."""

ABSENT = object()
"""What stands where there is nothing."""

_NO_JSON = frozenset({"json_malformed", "json_empty", "json_trailing_data"})
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,23}")
_EXAMPLE = "request.context.refund_amount=4200"


class KnobInvalid(ContextPlaneError):
    """A knob that names nothing, or whose value is no JSON, or none that may stand there."""

    code: ClassVar[str] = "knob_invalid"
    family: ClassVar[Family] = "usage"


class Knob(Value, frozen=True):
    """One change: what it is called, where it is, and the value that it gets there; null takes a fact away."""

    name: str
    at: str
    value: object

    @property
    def words(self) -> str:
        return f"{self.name}={msgspec.json.encode(self.value).decode()}"


def knob_of(text: str) -> Knob:
    """Read `PATH=VALUE`. The value is JSON: a text stands in quotes."""
    name, equals, given = text.partition("=")
    if not name or not equals:
        raise KnobInvalid("write PATH=VALUE", at=f"--set {text[:80]}", hint=f"such as --set {_EXAMPLE}")
    try:
        value = parse(given.encode()).value
    except ContextPlaneError as error:
        raise _no_value(name, given, error) from error
    except UnicodeEncodeError as error:
        raise KnobInvalid("its value is no text", at=f"--set {name[:80]}", hint="write it as UTF-8") from error
    return Knob(name=name, at=fact_at(name), value=value)


def _no_value(name: str, given: str, error: ContextPlaneError) -> KnobInvalid:
    """Why a value is refused. One that is no JSON at all was probably meant as a text."""
    at = f"--set {name[:80]}"
    if error.code not in _NO_JSON:
        return KnobInvalid(f"its value is refused: {error.message}", at=at, hint=error.hint or "write another one")
    shown = given if _WORD.fullmatch(given) else "..."
    return KnobInvalid(
        "its value is no JSON", at=at, hint=f"""a text stands in quotes: --set '{name[:60]}="{shown}"'"""
    )


def fact_at(name: str) -> str:
    """Where in a case a fact stands. A name that begins with `/` says it itself."""
    if name.startswith("/"):
        return name
    for fact, way in _FACTS.items():
        if name == fact or name.startswith(f"{fact}."):
            rest = name.removeprefix(fact).split(".")[1:]
            if all(rest) or not rest:
                return pointer([*way, *rest])
    raise KnobInvalid(
        "names nothing in a request", at=f"--set {name[:80]}", hint=nearest(name, _FACTS, "begin with a fact")
    )


def turned(value: Json, knobs: Iterable[Knob], known: frozenset[str] | None) -> Json:
    """The case after these changes. `known` are the places that something looks at: no other may be new.

    None: whatever is new is taken.
    """
    for knob in knobs:
        value = put(value, knob.at, knob.value, known=known, name=knob.name)
        for first, other in _TOGETHER:
            if knob.at == first and value_at(value, other) is not ABSENT:
                value = put(value, other, knob.value)
    return value


def value_at(value: Json, at: str) -> object:
    """What stands at a place; ABSENT when nothing does."""
    here: object = value
    for step in _steps(at):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and _is_place(step, here):
            here = here[int(step)]
        else:
            return ABSENT
    return here


def put(value: Json, at: str, new: object, *, known: frozenset[str] | None = None, name: str = "") -> Json:
    """A copy with a value at a place. Only what is on the way there is copied."""
    steps = _steps(at)
    if not steps:
        raise _names_nothing(name or at, ())
    return _put(value, steps, 0, new, (at, known, name or at))


def _put(here: Json, steps: Sequence[str], n: int, new: object, asked: tuple[str, frozenset[str] | None, str]) -> Json:
    at, known, name = asked
    step, last = steps[n], n == len(steps) - 1
    if isinstance(here, list) and _is_place(step, here):
        made = list(here)
        made[int(step)] = new if last else _put(here[int(step)], steps, n + 1, new, asked)  # type: ignore[call-overload]
        return made
    if not isinstance(here, dict):
        raise _names_nothing(name, ())
    if step not in here and known is not None:
        _refuse_unknown(here, at, pointer(steps[:n]), known, name)
    inner = here.get(step, {})
    return {**here, step: new if last else _put(inner, steps, n + 1, new, asked)}  # type: ignore[dict-item]


def _refuse_unknown(here: Mapping[str, Json], at: str, parent: str, known: frozenset[str], name: str) -> None:
    """A new member of an open object must be one that something looks at; that of another, its form judges."""
    for one in OPEN:
        if (parent == one or parent.startswith(f"{one}/")) and not any(
            at == place or at.startswith(f"{place}/") or place.startswith(f"{at}/") for place in known
        ):
            beside = [place.removeprefix(f"{parent}/") for place in known if place.startswith(f"{parent}/")]
            raise _names_nothing(name, (*here, *beside))


def _names_nothing(name: str, beside: Iterable[str]) -> KnobInvalid:
    last = name.replace("/", ".").rpartition(".")[2]
    hint = nearest(last, set(beside), "name something that the request has, or that the pack looks at")
    return KnobInvalid("is not in the request, and the pack looks at nothing there", at=f"--set {name[:80]}", hint=hint)


def _is_place(step: str, here: Sequence[Json]) -> bool:
    """Whether it is the number of an element. One with more digits than there can be is not read as a number."""
    return step.isascii() and step.isdecimal() and len(step) <= len(str(len(here))) and int(step) < len(here)


def _steps(at: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in at.split("/")[1:]]


_LOOKED_UP = ("signals", "timezone", "currency", "region")
"""Members of `request.context` that every compile looks at."""


def conditions_of(pack: ContextPack) -> Iterator[Json]:
    """Every condition that decides something when a context is compiled."""
    layer = pack.policy_layer
    for bundle in layer.policy_bundles:
        yield from (rule.condition for rule in bundle.policy_dsl.rules)
    yield from (gate.when for gate in layer.approval_gates if gate.when is not None)
    for guardrail in (*layer.guardrails.must_refuse, *layer.guardrails.must_escalate):
        if isinstance(guardrail, Guardrail) and guardrail.when is not None:
            yield guardrail.when


def labels_of(pack: ContextPack) -> tuple[str, ...]:
    """The labels of all guardrails."""
    rails = pack.policy_layer.guardrails
    return tuple(
        guardrail.id if isinstance(guardrail, Guardrail) else guardrail
        for guardrail in (*rails.must_refuse, *rails.must_escalate)
    )


def known_places(pack: ContextPack) -> frozenset[str]:
    """The places in a case that this pack looks at."""
    read = {path for one in conditions_of(pack) for path in variables(one)} | set(MATCHED.values())
    required = {name for spec in pack.decision_layer.decision_specs for name in spec.required_evidence}
    context = {f"request.context.{name}" for name in (*_LOOKED_UP, *labels_of(pack), *required)}
    claims = {f"user.{name}" for name in UserClaims.__struct_fields__ if name != "further"}
    return frozenset(_places(read | context | claims))


def _places(names: set[str]) -> Iterator[str]:
    for name in names:
        try:
            yield fact_at(name)
        except KnobInvalid:
            continue  # no fact, so that no request can hold it
