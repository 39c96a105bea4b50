"""Values that stand beside their names in a text that is no JSON: members, flags, elements and pairs.

| notation | example |
|---|---|
| member of an object | `"password": "x"`, also in JSON that is cut off or quoted |
| pair | `"key": "password", "value": "x"`, and two lines `name: password`, `value: x` |
| flag of a command | `--password x`, `--password=x`, `'--password', 'x'` |
| element of XML | `<password>x</password>`, `<entry key="password">x</entry>` |
| attribute of XML | `<user password="x"/>`, `<add key="password" value="x"/>` |

No pattern backtracks over a long run: the cost is linear.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from contextplane.policy.redaction.folded_text import fold
from contextplane.policy.regex_safety import lazy_regex

__all__ = ["FLAG", "NamedValue", "is_label", "is_labelled_value", "label_of", "may_hold_named_value", "named_values"]

# The value is not possessive: before 3.11.5, Python repeats a group with a look-ahead too often then. Nothing follows
# that it could give a character back to.
_QUOTED = r"""(?:(?!\\?(?P=quote))(?:[^\\\n]|\\.))+"""
_MEMBER = lazy_regex(
    r"""\\?(["'])(?P<name>[^"'\\\n]{1,64})\\?\1\s{0,3}:\s{0,3}"""
    rf"""(?:\\?(?P<quote>["'])(?P<value>{_QUOTED})|(?P<number>-?[0-9][0-9.eE+-]{{0,40}}+))"""
)
_MEMBER_END = lazy_regex(r"""["']\s{0,3}:""")
_MEMBER_IN_JSON = lazy_regex(r'"([^"\\]{1,256})"\s*:')
_MEMBER_GAP = "\\\"', \t\r\n"

_LABELS = frozenset(
    (
        *("attribute", "field", "header", "id", "key", "kind", "label", "name", "option", "param", "parameter"),
        *("property", "setting", "system", "type", "variable"),
    )
)
"""Members that say what the value beside them is: `{"key": "password", "value": ...}`."""

_LABEL_WORDS, _MOST_SIBLINGS = 3, 32
_LABEL_MEMBER = lazy_regex(
    rf"""(?i:(?:{"|".join(sorted(_LABELS))})\\?["']?\s{{0,3}}[:=]\s{{0,3}}\\?["']?)([^"'\\\n<>]{{1,64}})"""
)
_LAST_WORD = lazy_regex(r"[A-Z]?[a-z]+\Z|[A-Z]+\Z")
_LINE_PAIR = lazy_regex(
    rf"""(?m:^)[ \t-]{{0,40}}["']?(?i:(?:{"|".join(sorted(_LABELS))}))["']?:[ \t]{{1,4}}"""
    r"""["']?(?P<name>[\w.-]{1,64}+)"""
    r"""["']?[ \t]{0,4}\r?\n[ \t]{0,40}["']?(?i:value)["']?:[ \t]{1,4}(?P<quote>["']?)(?P<value>[^\s"'#][^\n"']*)"""
)
_FLAG_NAME = r"--?(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,63}+)"
FLAG = lazy_regex(_FLAG_NAME)
_FLAG_VALUE = lazy_regex(
    rf"""(?<![\w-]){_FLAG_NAME}(?P<joint>=|\\?["']?,?[ \t]{{1,4}}|\\?["'],)"""
    rf"""(?:\\?(?P<quote>["'])(?P<quoted>{_QUOTED})|(?P<bare>(?!-)[^\s"'`<>|&;()\\]{{1,500}}))"""
)
_REFERENCE = lazy_regex(r"\$(?:[({].*|[A-Z_][A-Z0-9_]*)?|%[A-Z_][A-Z0-9_]*%|\{\{.*")
"""What a shell or a template replaces: the name of a value, and not the value."""

_PROSE = frozenset(
    (
        *(
            "a",
            "an",
            "and",
            "are",
            "argument",
            "arguments",
            "as",
            "at",
            "but",
            "by",
            "can",
            "cannot",
            "did",
            "do",
            "does",
        ),
        *(
            "field",
            "flag",
            "flags",
            "for",
            "from",
            "had",
            "has",
            "have",
            "here",
            "if",
            "in",
            "instead",
            "into",
            "is",
            "it",
        ),
        *("may", "must", "not", "of", "on", "option", "options", "or", "parameter", "parameters", "prompt", "requires"),
        *(
            "setting",
            "should",
            "so",
            "switch",
            "takes",
            "that",
            "the",
            "then",
            "this",
            "to",
            "together",
            "until",
            "value",
        ),
        *("values", "was", "were", "when", "where", "which", "while", "will", "with", "without", "would"),
    )
)
"""Words that follow a flag where a sentence speaks of it."""

_TAG = lazy_regex(r"<(?P<close>/?)(?P<name>[A-Za-z_][\w.:-]{0,63}+)(?P<rest>(?:\s[^<>]{0,2000})?/?)>")
_ATTRIBUTE = lazy_regex(
    r"""(?<![\w.:-])(?P<name>[A-Za-z_][\w.:-]{0,63}+)\s{0,3}=\s{0,3}\\?(?P<quote>["'])"""
    r"""(?P<value>(?:(?!\\?(?P=quote))[^<>])+)"""
)
_ATTRIBUTE_NAME = lazy_regex(r"""([A-Za-z_][\w.:-]{0,63}+)\s{0,3}=\s{0,3}\\?["']""")
_TAG_NAME = lazy_regex(r"</([A-Za-z_][\w.:-]{0,63}+)")
_CDATA = ("<![CDATA[", "]]>")


class NamedValue(NamedTuple):
    """A value and its name. `is_exact`: the name may well be that of something else, as in `--name`."""

    name: str
    start: int
    end: int
    is_number: bool = False
    is_exact: bool = False


def is_label(name: str) -> bool:
    """Whether a member of this name says what the value beside it is."""
    return _last_word(name) in _LABELS


def is_labelled_value(name: str) -> bool:
    """Whether a member of this name holds the value that a label beside it names: `value`, `stringValue`."""
    return _last_word(name) in ("value", "values", "val")


def label_of(text: str) -> str:
    """A label as the name of a field; empty where it has too many words to be one."""
    return text if len(text.split()) <= _LABEL_WORDS else ""


@lru_cache(4096)
def _last_word(name: str) -> str:
    match = _LAST_WORD().search(fold(name[-64:]).text)
    return match[0].lower() if match else ""


def may_hold_named_value(text: str, lowered: str, is_field: Callable[[str], object]) -> bool:
    """Whether a text, or one of several lines, may hold a value whose name is a field: a fast test."""
    has_member = ":" in text and _MEMBER_END().search(text) is not None
    # A name in single quotes needs the slow test.
    if has_member and ("'" in text or any(map(is_field, _MEMBER_IN_JSON().findall(text)))):
        return True
    if "val" in lowered and any(is_field(label_of(label)) for label in _LABEL_MEMBER().findall(text)):
        return True
    if "-" in text and any(map(is_field, FLAG().findall(text))):
        return True
    return "<" in text and (
        any(map(is_field, _TAG_NAME().findall(text)))
        or ("=" in text and any(map(is_field, _ATTRIBUTE_NAME().findall(text))))
        or any(is_field(label_of(label)) for label in _LABEL_MEMBER().findall(text))
    )


def named_values(text: str) -> Iterator[NamedValue]:
    """Yield the values that stand beside a name. They may overlap, and have no order."""
    if ":" in text and _MEMBER_END().search(text) is not None:
        yield from _members(text)
    if ":" in text and "\n" in text:
        for match in _LINE_PAIR().finditer(text):
            yield NamedValue(match["name"], *match.span("value"))
    if "-" in text:
        yield from _flags(text)
    if "<" in text:
        yield from _elements(text)


def _members(text: str) -> Iterator[NamedValue]:
    siblings: list[NamedValue] = []
    for match in _MEMBER().finditer(text):
        group = "number" if match["number"] else "value"
        member = NamedValue(match["name"], *match.span(group), is_number=group == "number")
        yield member
        is_apart = siblings and text[siblings[-1].end : match.start()].strip(_MEMBER_GAP)
        if is_apart or len(siblings) == _MOST_SIBLINGS:
            yield from _pairs(text, siblings)
            siblings = []
        siblings.append(member)
    yield from _pairs(text, siblings)


def _pairs(text: str, siblings: list[NamedValue], *, is_exact: bool = False) -> Iterator[NamedValue]:
    """Yield the values of members that another member of the same object names."""
    values = [member for member in siblings if is_labelled_value(member.name)]
    for label in siblings if values else ():
        if is_label(label.name) and not label.is_number:
            name = label_of(text[label.start : label.end])
            yield from (value._replace(name=name, is_exact=is_exact) for value in values)


def _flags(text: str) -> Iterator[NamedValue]:
    for match in _FLAG_VALUE().finditer(text):
        group = "quoted" if match["quoted"] else "bare"
        start, end = match.span(group)
        value = match[group]
        if group == "bare":
            value = value.rstrip(".,:!?]}")
            end = start + len(value)
        is_prose = group == "bare" and match["joint"] != "=" and value.lower() in _PROSE
        if value and not is_prose and not _REFERENCE().fullmatch(value):
            yield NamedValue(match["name"], start, end, is_exact=True)


def _elements(text: str) -> Iterator[NamedValue]:
    """Yield the contents of elements that are closed, and the values of attributes."""
    names: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for match in _TAG().finditer(text):
        name = match["name"]
        if match["close"]:
            if names.get(name):
                start, labels = names[name].pop()
                start, end = _content(text, start, match.start())
                if start < end:
                    yield NamedValue(name, start, end)
                    yield from (NamedValue(label, start, end) for label in labels)
            continue
        attributes = [
            NamedValue(attribute["name"], *attribute.span("value"), is_exact=True)
            for attribute in _ATTRIBUTE().finditer(text, *match.span("rest"))
        ]
        yield from attributes
        yield from _pairs(text, attributes)
        if not match["rest"].endswith("/"):
            labels = tuple(label_of(text[item.start : item.end]) for item in attributes if is_label(item.name))
            names.setdefault(name, []).append((match.end(), labels))


def _content(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the content of an element stands, without the blanks around it and without the marks of CDATA."""
    start, end = _strip(text, start, end)
    opening, closing = _CDATA
    if text.startswith(opening, start) and text.endswith(closing, start + len(opening), end):
        start, end = _strip(text, start + len(opening), end - len(closing))
    return start, end


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
