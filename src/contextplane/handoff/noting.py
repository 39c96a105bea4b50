"""Reading what an agent sent: what is wrong is noted with its place and guidance, and all of it is told at once."""

from typing import Protocol, TypeVar

from contextplane.handoff.refusals import HandoffInvalid
from contextplane.model.canonical import Json

__all__ = ["Noting", "nearest", "shown"]

T = TypeVar("T")

_TYPES = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object", float: "number"}
_LISTED = 100  # problems that are listed one by one
_SHOWN = 60
_ALIKE = 0.55


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


P = TypeVar("P", bound=_Keyed)


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """The known name that was probably meant: the one with most letters and pairs of letters in common."""
    given = _parts(name[:_SHOWN].lower())
    alike = {one: 2 * len(given & _parts(one)) / (len(given) + len(_parts(one))) for one in known}
    best = max(known, key=alike.__getitem__)
    return best if alike[best] >= _ALIKE else None


def _parts(name: str) -> set[str]:
    return {*name, *(name[n : n + 2] for n in range(len(name) - 1))}


def shown(text: str) -> str:
    """A text from outside, quoted and cut to what fits into a message."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


class Noting:
    """Reads values, and notes what is wrong instead of stopping. What it returns counts only when nothing was noted."""

    def __init__(self, tool: str, action: str) -> None:
        self._tool, self._action = tool, action
        self._problems: list[dict[str, object]] = []

    def check(self) -> None:
        """Refuse when something was noted. `details` repeats the guidance of the first problem at its top."""
        if not self._problems:
            return
        first = self._problems[0]
        required = [one["path"] for one in self._problems if one.get("missing")]
        more = f" (and {len(self._problems) - 1} more)" if len(self._problems) > 1 else ""
        extra = {key: value for key, value in first.items() if key not in {"path", "message", "missing"}}
        listed = [{key: value for key, value in one.items() if key != "missing"} for one in self._problems[:_LISTED]]
        details = {"tool": self._tool, "action": self._action, "field": first["path"], **extra}
        if required:
            details["required_fields"] = required
        raise HandoffInvalid(
            f"{first['message']}{more}",
            at=str(first["path"]),
            hint="mend what details.problems lists",
            details={**details, "problems": listed, "problems_total": len(self._problems)},
        )

    def members(
        self, value: Json, place: str, known: tuple[str, ...], ignored: tuple[str, ...] = ()
    ) -> dict[str, Json] | None:
        entry = self.typed(value, dict, place)
        for name in sorted(entry.keys() - {*known, *ignored}) if entry else ():
            near = nearest(name, known) if len(self._problems) < _LISTED else None
            meant = f"; did you mean {near}?" if near else f" (known: {', '.join(known)})"
            guidance: dict[str, object] = {"supported_field": near} if near else {}
            self.note(f"{place}.{name[:_SHOWN]}", f"is not known{meant}", unsupported_field=name[:_SHOWN], **guidance)
        return entry

    def entries(self, entry: dict[str, Json], key: str, at: str, *, required: bool = False) -> list[tuple[Json, str]]:
        value = entry.get(key)
        if value is None and not (required and key in entry):
            if required:
                self.missing(f"{at}{key}", required_type="array")
            return []
        return [(one, f"{at}{key}[{n}]") for n, one in enumerate(self.typed(value, list, f"{at}{key}") or [])]

    def unique(self, parts: list[P | None], entries: list[tuple[Json, str]]) -> tuple[P, ...]:
        first: dict[str, str] = {}
        for part, (_, place) in zip(parts, entries, strict=True):
            if part is not None and part.key and first.setdefault(part.key, place) != place:
                self.note(f"{place}.key", f"is that of {first[part.key]} as well: {shown(part.key)}")
        return tuple(part for part in parts if part is not None)

    def needed(self, entry: dict[str, Json], key: str, at: str) -> str:
        if key not in entry:
            self.missing(f"{at}{key}", required_type="string")
            return ""
        return self.typed(entry[key], str, f"{at}{key}") or ""

    def text(self, entry: dict[str, Json], key: str, at: str) -> str | None:
        value = entry.get(key)
        return None if value is None else self.typed(value, str, f"{at}{key}")

    def typed(self, value: object, kind: type[T], place: str) -> T | None:
        if type(value) is kind:
            return value
        wanted = _TYPES[kind]
        self.note(place, f"must be of type {wanted}, not {_type_of(value)}", required_type=wanted)
        return None

    def within(self, value: Json, low: int, high: int | None, place: str) -> int:
        number = value if type(value) is int else low
        if number < low or (high is not None and number > high):
            bounds = f"at least {low}" if high is None else f"{low} to {high}"
            limits: dict[str, object] = {"minimum": low} if high is None else {"minimum": low, "maximum": high}
            self.note(place, f"must be {bounds}, not {number}", **limits)
        return number

    def missing(self, place: str, **guidance: object) -> None:
        self.note(place, "is required", missing=True, **guidance)

    def note(self, place: str, message: str, **guidance: object) -> None:
        self._problems.append({"path": place, "message": message, **guidance})


def _type_of(value: object) -> str:
    return "null" if value is None else _TYPES[type(value)]
