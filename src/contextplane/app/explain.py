"""What stands behind a name that `ctx lint` prints: a gate with its laws, a law, or an error of `ctx` itself."""

from typing import Any, get_args

from contextplane.app.packs.lint import LawUnknown
from contextplane.authoring.artifacts import LAWS_OF
from contextplane.authoring.finding import Gate, Law
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = ["ErrorExplained", "GateExplained", "LawExplained", "explained"]


class LawExplained(Value, frozen=True):
    """One law: its gate, its code, how grave it is to break it, and what it says."""

    gate: Gate
    code: str
    severity: str
    law: str


class GateExplained(Value, frozen=True):
    """A gate, and every law of it, whichever kind of document it is for."""

    gate: Gate
    laws: tuple[LawExplained, ...]


class ErrorExplained(Value, frozen=True):
    """An error of `ctx` itself: a document that could not be read, compared or applied."""

    code: str
    family: Family
    means: str


def explained(name: str) -> GateExplained | LawExplained | ErrorExplained:
    """What a gate, a law or an error of this name is. An unknown one is answered with what there is."""
    laws = {law.code: law for of_kind in LAWS_OF.values() for law in of_kind}
    for gate in get_args(Gate):
        if name in {gate, f"{gate}/"}:
            return GateExplained(gate=gate, laws=tuple(map(_told, (law for law in laws.values() if law.gate == gate))))
    code = name.rpartition("/")[2]  # as lint prints it: risk/destructive_without_gate
    if code in laws:
        return _told(laws[code])
    errors = _errors()
    if code in errors:
        found = errors[code]
        return ErrorExplained(code=code, family=found.family, means=" ".join((found.__doc__ or "").split()))
    raise LawUnknown(f"no gate, law or error has the name {name[:60]!r}", hint=_hint(code, {*laws, *errors}))


def _told(law: Law[Any]) -> LawExplained:
    return LawExplained(gate=law.gate, code=law.code, severity=law.severity, law=law.text)


def _hint(code: str, known: set[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(code, sorted(known), n=1)
    gates = f"the gates are {', '.join(get_args(Gate))}; each, explained, lists its laws"
    return f"did you mean {near[0]}?" if near else f"{gates}; docs/errors.md has the errors of every command"


def _errors() -> dict[str, type[ContextPlaneError]]:
    """The errors that judging, checking and comparing files can end in."""
    import contextplane.app.compile.check
    import contextplane.app.packs.diff
    import contextplane.app.packs.files
    import contextplane.authoring.overlay.apply
    import contextplane.authoring.yaml_reader
    import contextplane.model.json.explain  # noqa: F401  all of them for the classes that they define

    def below(one: type[ContextPlaneError]) -> list[type[ContextPlaneError]]:
        return [one, *(deeper for child in one.__subclasses__() for deeper in below(child))]

    return {one.code: one for one in below(ContextPlaneError) if one is not ContextPlaneError}
