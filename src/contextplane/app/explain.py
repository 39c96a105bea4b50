"""Explains a name that `ctx lint` prints: a gate with its laws, a law, or an error of `ctx` itself."""

from typing import Any, get_args

from contextplane.authoring.artifacts import LAWS_OF, LawUnknown
from contextplane.authoring.law import Gate, Law
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.suggestion import closest_name
from contextplane.model.value import Value

__all__ = ["ErrorExplanation", "GateExplanation", "LawExplanation", "find_explanation"]


class LawExplanation(Value, frozen=True):
    """One law: its gate, its code, the severity of breaking it, and its text."""

    gate: Gate
    code: str
    severity: str
    law: str


class GateExplanation(Value, frozen=True):
    """A gate and all of its laws, for every kind of document."""

    gate: Gate
    laws: tuple[LawExplanation, ...]


class ErrorExplanation(Value, frozen=True):
    """An error of `ctx` itself: a document that could not be read, compared or applied."""

    code: str
    family: Family
    means: str


def find_explanation(name: str) -> GateExplanation | LawExplanation | ErrorExplanation:
    """Explain the gate, law or error of this name. For an unknown name the hint lists the known ones."""
    laws = {law.code: law for of_kind in LAWS_OF.values() for law in of_kind}
    for gate in get_args(Gate):
        if name in {gate, f"{gate}/"}:
            return GateExplanation(
                gate=gate, laws=tuple(map(_explain_law, (law for law in laws.values() if law.gate == gate)))
            )
    code = name.rpartition("/")[2]  # as lint prints it: risk/destructive_without_gate
    if code in laws:
        return _explain_law(laws[code])
    errors = _error_classes()
    if code in errors:
        error = errors[code]
        return ErrorExplanation(code=code, family=error.family, means=" ".join((error.__doc__ or "").split()))
    raise LawUnknown(f"no gate, law or error has the name {name[:60]!r}", hint=_hint(code, {*laws, *errors}))


def _explain_law(law: Law[Any]) -> LawExplanation:
    return LawExplanation(gate=law.gate, code=law.code, severity=law.severity, law=law.text)


def _hint(code: str, known: set[str]) -> str:
    near = closest_name(code, known)
    gates = f"the gates are {', '.join(get_args(Gate))}; each, explained, lists its laws"
    return f"did you mean {near}?" if near else f"{gates}; docs/errors.md has the errors of every command"


def _error_classes() -> dict[str, type[ContextPlaneError]]:
    """Map each code to its error class, of all errors that lint, check and diff can end in."""
    import contextplane.app.compile.check
    import contextplane.app.packs.diff
    import contextplane.app.packs.files
    import contextplane.authoring.overlay.resolved_view
    import contextplane.authoring.yaml_reader
    import contextplane.model.json.explain  # noqa: F401  all of them for the classes that they define

    def subclasses(base: type[ContextPlaneError]) -> list[type[ContextPlaneError]]:
        return [cls for child in base.__subclasses__() for cls in (child, *subclasses(child))]

    return {cls.code: cls for cls in subclasses(ContextPlaneError)}
