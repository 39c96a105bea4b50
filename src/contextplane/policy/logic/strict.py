"""The strict form of an expression: kinds match, or evaluating it is an error. Pure.

A value is null, true or false, a number, a text, a list or an object. The strict form of an expression has the value
that JSONLogic gives it, or fails. It never converts a value into another kind, and never takes a text for a duration
or a date. `docs/policy.md` has the rules of each operator.

The form is an expression again. It uses three operators that no pack may use: `type`, `switch` and `throw`. An operator
reads all of its operands before it looks at their kinds; `and`, `or`, `if` and loops stop as JSONLogic does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from contextplane.model.json.canonical import MAX_INTEGER, Json

__all__ = [
    "ARITHMETIC",
    "ARITY",
    "COMPARISONS",
    "FAILURES",
    "INTERNAL_FAMILIES",
    "LIST_OPERATORS",
    "MISSING",
    "NULL_MET",
    "OPERATORS",
    "ORDERINGS",
    "PER_ELEMENT",
    "literal_names",
    "may_be_time",
    "operation",
    "possible_kinds",
    "reads_without_default",
    "strict_form",
    "throw",
]

# --- Operators ---

ORDERINGS = frozenset({"<", "<=", ">", ">="})
COMPARISONS = frozenset({"==", "===", "!=", "!=="}) | ORDERINGS
ARITHMETIC = frozenset({"max", "min", "+", "-", "*", "/", "%"})
"""Operators that return a number."""

PER_ELEMENT = frozenset({"map", "filter", "reduce", "all", "none", "some"})
"""Operators that iterate a list: the list is the first operand, the body the second."""

LIST_OPERATORS = frozenset({"map", "filter", "merge", "missing", "missing_some"})
"""Operators that return a list."""

OPERATORS = (
    COMPARISONS
    | ARITHMETIC
    | PER_ELEMENT
    | LIST_OPERATORS
    | {"var", "if", "?:", "!", "!!", "or", "and", "in", "cat", "substr"}
)
"""The operators of the public suite, without the extensions of an engine: no dates and no random numbers."""

_ONE, _TWO, _THREE = 1, 2, 3
ARITY: Mapping[str, tuple[int, int | None]] = {
    **dict.fromkeys(("==", "===", "!=", "!==", ">", ">=", "/", "%", "in", "missing_some"), (_TWO, _TWO)),
    **dict.fromkeys(("map", "filter", "all", "none", "some"), (_TWO, _TWO)),
    **dict.fromkeys(("<", "<=", "substr", "reduce"), (_TWO, _THREE)),
    **dict.fromkeys(("!", "!!"), (_ONE, _ONE)),
    **dict.fromkeys(("and", "or", "max", "min", "+", "*"), (_ONE, None)),
    **dict.fromkeys(("if", "?:", "merge", "missing", "cat"), (0, None)),
    "-": (_ONE, _TWO),
    "var": (0, _TWO),
}
"""The least and the greatest number of operands. JSONLogic ignores further ones."""


def operation(expression: Json) -> tuple[str, list[Json]]:
    """The operator and its operands; an empty operator where there is none."""
    if not isinstance(expression, dict) or len(expression) != 1:
        return "", []
    operator, argument = next(iter(expression.items()))
    return operator, argument if isinstance(argument, list) else [argument]


def reads_without_default(operands: Sequence[Json]) -> bool:
    """Whether a variable with these operands has no default. A default of null is none."""
    return len(operands) < _TWO or operands[1] is None


def literal_names(operator: str, operands: Sequence[Json]) -> list[str] | None:
    """The names that `missing` or `missing_some` asks for; None where they are computed."""
    names: Sequence[Json] = operands
    if operator == "missing_some":
        names = operands[1] if len(operands) == _TWO and isinstance(operands[1], list) else [None]
    elif len(operands) == _ONE and isinstance(operands[0], list):
        names = operands[0]
    texts = [name for name in names if isinstance(name, str)]
    return texts if len(texts) == len(names) else None


# --- Kinds and failures ---

INTERNAL_FAMILIES = ("ExtControl", "ErrorHandling")
"""The engine's families with `type`, `switch` and `throw`. No pack can use them: they are not in `OPERATORS`."""

_NULL, _BOOLEAN, _NUMBER, _TEXT, _LIST, _OBJECT = "null", "boolean", "number", "string", "array", "object"
_ANY = frozenset({_NULL, _BOOLEAN, _NUMBER, _TEXT, _LIST, _OBJECT})
_NEVER = frozenset[str]()
_PLAIN = (_TEXT, _NUMBER, _BOOLEAN)
_TRUTHS = frozenset({_BOOLEAN, _NULL, _LIST})
_TIMES = ("duration", "datetime")
"""What the engine calls texts, and objects with one member, that spell a duration or a time."""

MISSING = "missing"
NULL_MET = "null_met"
_NO_ANSWER: Json = {"throw": NULL_MET}
_NO_EQUALITY, _NO_ORDER, _NO_NUMBER, _NO_TRUTH = "no_equality", "no_order", "no_number", "no_truth"
_NO_LIST, _NO_PLACE, _NO_NEEDLE, _NO_TEXT, _INEXACT = "no_list", "no_place", "no_needle", "no_text", "inexact"
_UNUSABLE, _NO_QUOTIENT = "unusable", "NaN"
FAILURES: Mapping[str, str] = {
    NULL_MET: "it orders, computes with or searches for null",
    _NO_EQUALITY: "it compares values of different kinds, lists or objects",
    _NO_ORDER: "it orders what is neither two numbers nor two texts",
    _NO_NUMBER: "it computes with what is no number",
    _NO_TRUTH: "it takes what is neither true, false nor a list for a truth",
    _NO_LIST: "it goes through what is no list",
    _NO_PLACE: "it searches what is neither a list nor a text",
    _NO_NEEDLE: "it searches for what cannot be in there",
    _NO_TEXT: "it joins or cuts what is no text",
    _INEXACT: "a number in it is beyond 2^53-1, or too small to be spelled",
    _UNUSABLE: "an operator in it has other operands than it takes",
    _NO_QUOTIENT: "it divides by zero",
}
"""What an error of a strict form means, by the reason that it throws."""


def throw(why: str) -> Json:
    """An expression without a value; the engine's error says why."""
    return {"throw": why}


class _Form(NamedTuple):
    """A strict form, and the kinds that its value can have. None: it always fails."""

    form: Json
    kinds: frozenset[str]


def strict_form(expression: Json) -> Json:
    """The same expression in its strict form."""
    return _translate(expression).form


def possible_kinds(expression: Json) -> frozenset[str]:
    """The kinds that the value of an expression can have, in the engine's words. None: it always fails."""
    return _translate(expression).kinds


def _translate(expression: Json) -> _Form:
    if isinstance(expression, list):
        parts = [_translate(part) for part in expression]
        return _Form([part.form for part in parts], frozenset({_LIST}) if _can_all_be(parts) else _NEVER)
    if not isinstance(expression, dict):
        return _Form(expression, frozenset({_kind_of(expression)}))
    operator, operands = operation(expression)
    if operator not in _TRANSLATIONS:
        return _Form(expression, _NEVER if operator == "throw" else _ANY)
    least, most = ARITY[operator]
    if len(operands) < least or (most is not None and len(operands) > most):
        return _fail(_UNUSABLE)
    return _TRANSLATIONS[operator](operator, operands)


def _fail(why: str) -> _Form:
    return _Form(throw(why), _NEVER)


def _kind_of(constant: Json) -> str:
    if constant is None or isinstance(constant, bool):
        return _NULL if constant is None else _BOOLEAN
    return _TEXT if isinstance(constant, str) else _NUMBER


def _can_all_be(parts: Sequence[_Form]) -> bool:
    return all(part.kinds for part in parts)


# --- Values that are looked at more than once ---


def _is_constant(form: Json) -> bool:
    if isinstance(form, list):
        return all(map(_is_constant, form))
    return not isinstance(form, dict)


def _is_cheap(form: Json) -> bool:
    """Whether a form may be evaluated again and again: a constant, or a variable with a plain default."""
    operator, operands = operation(form)
    return _is_constant(form) or (operator == "var" and not any(isinstance(part, dict | list) for part in operands))


def _bind(parts: Sequence[_Form], kinds: frozenset[str], body: Callable[..., Json]) -> _Form:
    """The body over the values of these parts, each computed once, or nesting would double the work."""
    if not _can_all_be(parts):
        return _Form([part.form for part in parts], _NEVER)  # one of them fails, after those before it are read
    if all(_is_cheap(part.form) for part in parts):
        made = body(*parts)
        return _Form(made, _NEVER if _is_failure(made) else kinds)
    bound = [part for part in parts if not _is_constant(part.form)]
    names = iter(range(len(bound)))
    made = body(
        *(part if _is_constant(part.form) else _Form({"var": f"current.{next(names)}"}, part.kinds) for part in parts)
    )
    form: Json = {"reduce": [[[part.form for part in bound]], made, None]}
    return _Form(form, _NEVER if _is_failure(made) else kinds)


def _is_failure(form: Json) -> bool:
    return operation(form)[0] == "throw"


def _by_kind(value: _Form, branches: Mapping[str, Json], otherwise: Json) -> Json:
    """The branch of the kind of a value that is cheap. Where all are alike, nothing is looked at."""
    possible = {kind: branches.get(kind, otherwise) for kind in sorted(value.kinds)}
    first, *others = possible.values()
    if all(branch == first for branch in others):
        return first
    cases: list[Json] = [[kind, branch] for kind, branch in possible.items() if branch != otherwise]
    text, other = possible.get(_TEXT), possible.get(_OBJECT)
    if _TEXT in possible and _OBJECT in possible and text != other:
        # Only the empty text tells a text from an object here: it stands in every text and in no object.
        spelled: Json = {"if": [{"in": ["", value.form]}, text, other]}
    else:
        spelled = text if _TEXT in possible else other
    if (_TEXT in possible or _OBJECT in possible) and spelled != otherwise:
        cases += [[time, spelled] for time in _TIMES]
    return {"switch": [{"type": [value.form]}, cases, otherwise]}


# --- Equality, order, arithmetic ---


def _equality(operator: str, operands: list[Json]) -> _Form:
    is_strict = operator in {"===", "!=="}

    def compare(a: _Form, b: _Form) -> Json:
        branches = {kind: _equal_to(kind, a, b, is_strict=is_strict) for kind in a.kinds}
        equal = _by_kind(a, branches, throw(_NO_EQUALITY))
        return equal if operator in {"==", "==="} or _is_failure(equal) else {"!": [equal]}

    return _bind([_translate(operand) for operand in operands], frozenset({_BOOLEAN}), compare)


def _equal_to(kind: str, a: _Form, b: _Form, *, is_strict: bool) -> Json:
    """Whether `a`, which is of this kind, equals `b`."""
    if kind == _NULL:
        return b.form is None if _is_constant(b.form) else {"===": [b.form, None]}
    branches: dict[str, Json] = {_NULL: False}
    if kind in _PLAIN:
        if is_strict:
            branches |= dict.fromkeys(_PLAIN, False)
        branches[kind] = {"===": _as_texts([a, b]) if kind == _TEXT else [a.form, b.form]}
    return _by_kind(b, branches, throw(_NO_EQUALITY))


def _as_texts(values: Sequence[_Form]) -> list[Json]:
    """The values in a form in which the engine compares them as texts.

    Of two, one that is no time by itself is enough. Otherwise a mark before each makes it none.
    """
    if len(values) == _TWO and any(isinstance(part.form, str) and not may_be_time(part.form) for part in values):
        return [value.form for value in values]
    return [_mark_text(value.form) for value in values]


def _mark_text(form: Json) -> Json:
    return f"={form}" if isinstance(form, str) else {"cat": ["=", form]}


def may_be_time(text: str) -> bool:
    """Whether the engine may take a text for a duration or a date. None of those begins with a letter."""
    return not text[:1].isalpha()


def _order(operator: str, operands: list[Json]) -> _Form:
    def compare(*values: _Form) -> Json:
        return _order_form(operator, values, values, "", met_null=False)

    return _bind([_translate(operand) for operand in operands], frozenset({_BOOLEAN}), compare)


def _order_form(operator: str, values: Sequence[_Form], left: Sequence[_Form], kind: str, *, met_null: bool) -> Json:
    """The comparison once the values that are left are looked at; those before are of this kind, or null."""
    if not left:
        if met_null:
            return _NO_ANSWER
        return {operator: _as_texts(values) if kind == _TEXT else [value.form for value in values]}
    branches = {
        own: _order_form(operator, values, left[1:], own, met_null=met_null)
        for own in (_NUMBER, _TEXT)
        if kind in {"", own}
    }
    branches[_NULL] = _order_form(operator, values, left[1:], kind, met_null=True)
    return _by_kind(left[0], branches, throw(_NO_ORDER))


def _arithmetic(operator: str, operands: list[Json]) -> _Form:
    def compute(*values: _Form) -> Json:
        if not all(value.kinds & {_NUMBER, _NULL} for value in values):
            return throw(_NO_NUMBER)
        doubtful = [value for value in values if value.kinds != {_NUMBER}]
        checks: list[Json] = []
        for value in doubtful:
            checks += [_by_kind(value, {_NUMBER: False, _NULL: False}, True), throw(_NO_NUMBER)]  # noqa: FBT003
        for value in doubtful:
            checks += [{"===": [value.form, None]}, _NO_ANSWER]
        computed = _number_form(operator, [value.form for value in values])
        return {"if": [*checks, computed]} if checks else computed

    return _bind([_translate(operand) for operand in operands], frozenset({_NUMBER}), compute)


def _number_form(operator: str, numbers: Sequence[Json]) -> Json:
    """The value of the operator over numbers, exact: other programs round beyond 2^53-1, at each step."""
    if operator in {"max", "min", "%"} or len(numbers) == 1:
        return numbers[0] if len(numbers) == 1 and operator != "-" else {operator: list(numbers)}
    total = numbers[0]
    for number in numbers[1:]:
        in_range: Json = {"<=": [-MAX_INTEGER, {"var": "current"}, MAX_INTEGER]}
        check: Json = {"if": [in_range, {"var": "current"}, throw(_INEXACT)]}
        total = {"reduce": [[{operator: [total, number]}], check, None]}
    return total


# --- Truth ---


def _truth(part: _Form) -> _Form:
    """A part in a place where its truth counts."""
    if part.kinds <= _TRUTHS:
        return part
    return _bind(
        [part],
        part.kinds & _TRUTHS,
        lambda value: _by_kind(value, dict.fromkeys(_TRUTHS, value.form), throw(_NO_TRUTH)),
    )


def _negation(operator: str, operands: list[Json]) -> _Form:
    part = _truth(_translate(operands[0]))
    return _Form({operator: [part.form]}, frozenset({_BOOLEAN})) if part.kinds else part


def _junction(operator: str, operands: list[Json]) -> _Form:
    parts = [_truth(_translate(operand)) for operand in operands]
    kinds = _NEVER.union(*(part.kinds for part in parts)) if parts[0].kinds else _NEVER
    return _Form({operator: [part.form for part in parts]}, kinds)


def _choice(operator: str, operands: list[Json]) -> _Form:
    parts = [_translate(operand) for operand in operands]
    tests = range(0, len(parts) - 1, 2)
    for n in tests:
        parts[n] = _truth(parts[n])
    results = [*parts[1::2], *(parts[-1:] if len(parts) % 2 else [])]
    kinds = _NEVER.union(*(part.kinds for part in results), () if len(parts) % 2 else (_NULL,))
    reachable = not tests or bool(parts[0].kinds)
    return _Form({operator: [part.form for part in parts]}, kinds if reachable else _NEVER)


# --- Lists ---

_ELEMENT = _Form({"var": ""}, _ANY)


def _loop(operator: str, operands: list[Json]) -> _Form:
    source, body, *others = (_translate(operand) for operand in operands)
    checked = _bind(
        [source],
        source.kinds,
        lambda value: _by_kind(value, dict.fromkeys((_LIST, _NULL), value.form), throw(_NO_LIST)),
    )
    if operator not in {"map", "reduce"}:
        body = _truth(body)
    kinds = _ANY if operator == "reduce" else frozenset({_LIST if operator in LIST_OPERATORS else _BOOLEAN})
    form: Json = {operator: [checked.form, body.form, *(other.form for other in others)]}
    return _Form(form, kinds if checked.kinds else _NEVER)


def _search(_: str, operands: list[Json]) -> _Form:
    def search(needle: _Form, place: _Form) -> Json:
        inside: Json = {"in": [needle.form, place.form]}
        # In an empty text is nothing, not even the empty text.
        within: Json = {"and": [{"!==": [place.form, ""]}, inside]}
        in_text = _by_kind(needle, {_TEXT: within, _NULL: _NO_ANSWER}, throw(_NO_NEEDLE))
        in_list = _by_kind(
            needle,
            {_TEXT: _search_texts(needle.form, place.form), **dict.fromkeys((_NUMBER, _BOOLEAN, _NULL), inside)},
            throw(_NO_NEEDLE),
        )
        return _by_kind(place, {_NULL: False, _TEXT: in_text, _LIST: in_list}, throw(_NO_PLACE))

    return _bind([_translate(operand) for operand in operands], frozenset({_BOOLEAN}), search)


def _search_texts(needle: Json, place: Json) -> Json:
    """Whether a text is one of the elements of a list, compared as texts."""
    if isinstance(needle, str) and not may_be_time(needle):
        return {"in": [needle, place]}
    if isinstance(place, list) and _is_constant(place):
        texts = [element for element in place if isinstance(element, str)]
        if not any(map(may_be_time, texts)):
            return {"in": [needle, place]}
        return {"in": [_mark_text(needle), [_mark_text(part) if isinstance(part, str) else part for part in place]]}
    marked = _by_kind(_ELEMENT, {_TEXT: _mark_text(_ELEMENT.form)}, _ELEMENT.form)
    return {"in": [_mark_text(needle), {"map": [place, marked]}]}


def _merge(_: str, operands: list[Json]) -> _Form:
    """One list of all. The engine drops nulls: each element is wrapped first and unwrapped after."""

    def wrap(value: _Form) -> Json:
        return _by_kind(value, {_LIST: {"map": [value.form, [_ELEMENT.form]]}}, [[value.form]])

    lists = [_bind([_translate(operand)], frozenset({_LIST}), wrap) for operand in operands]
    form: Json = {"map": [{"merge": [part.form for part in lists]}, {"var": "0"}]}
    return _Form(form, frozenset({_LIST}) if _can_all_be(lists) else _NEVER)


def _absence(operator: str, operands: list[Json]) -> _Form:
    """The names of what is null or an empty text."""
    names = literal_names(operator, operands)
    if names is None:
        return _fail(_UNUSABLE)
    absent: list[Json] = [{"in": [{"var": name}, [None, ""]]} for name in names]
    missing: Json = {"merge": [{"if": [test, [name], []]} for test, name in zip(absent, names, strict=True)]}
    if operator == "missing_some":
        needed = operands[0]
        if _kind_of(needed) != _NUMBER or isinstance(needed, dict | list):
            return _fail(_UNUSABLE)
        counts: list[Json] = [{"if": [test, 0, 1]} for test in absent]
        present: Json = {"+": [0, *counts]}
        missing = {"if": [{">=": [present, needed]}, [], missing]}
    return _Form(missing, frozenset({_LIST}))


# --- Texts and variables ---

_SMALLEST_SPELLED = 1e-6
"""Other programs write smaller numbers with an exponent."""


def _join(_: str, operands: list[Json]) -> _Form:
    def spell(value: _Form) -> Json:
        branches = {**dict.fromkeys((_TEXT, _NULL, _BOOLEAN), value.form), _NUMBER: _number_text(value.form)}
        return _by_kind(value, branches, throw(_NO_TEXT))

    texts = [_bind([_translate(operand)], frozenset({_TEXT}), spell) for operand in operands]
    return _Form({"cat": [part.form for part in texts]}, frozenset({_TEXT}) if _can_all_be(texts) else _NEVER)


def _number_text(number: Json) -> Json:
    """A number as a text. The engine writes 1.0 where other programs write 1."""
    if isinstance(number, int):
        return number
    text: Json = {"cat": [number]}
    tiny: Json = {"and": [{"<": [-_SMALLEST_SPELLED, number, _SMALLEST_SPELLED]}, {"!==": [number, 0]}]}
    whole: Json = {"===": [{"substr": [text, -2]}, ".0"]}
    return {"if": [tiny, throw(_INEXACT), whole, {"substr": [text, 0, -2]}, text]}


def _cut(operator: str, operands: list[Json]) -> _Form:
    source, *places = operands
    if not all(type(place) is int for place in places):
        return _fail(_UNUSABLE)

    def cut(text: _Form) -> Json:
        return _by_kind(text, {_TEXT: {operator: [text.form, *places]}, _NULL: _NO_ANSWER}, throw(_NO_TEXT))

    return _bind([_translate(source)], frozenset({_TEXT}), cut)


def _variable(_: str, operands: list[Json]) -> _Form:
    if reads_without_default(operands):
        operands = operands[:1]
    return _Form({"var": [_translate(operand).form for operand in operands]}, _ANY)


_TRANSLATIONS: Mapping[str, Callable[[str, list[Json]], _Form]] = {
    **dict.fromkeys(("==", "===", "!=", "!=="), _equality),
    **dict.fromkeys(ORDERINGS, _order),
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(("!", "!!"), _negation),
    **dict.fromkeys(("and", "or"), _junction),
    **dict.fromkeys(("if", "?:"), _choice),
    **dict.fromkeys(PER_ELEMENT, _loop),
    **dict.fromkeys(("missing", "missing_some"), _absence),
    "in": _search,
    "merge": _merge,
    "cat": _join,
    "substr": _cut,
    "var": _variable,
}
