"""The redactor: masks what the active rules find in a text or in a JSON value.

A masked value reads `[redacted:<rule>]`: the same for every value, so that the mask says nothing of it. All other text
stays as it is, byte for byte. Masking twice changes nothing: after it, no active rule finds anything.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.policy.detect.secrets import may_hold_secret, secret_spans
from contextplane.policy.redaction.folded_text import FoldedText, fold
from contextplane.policy.redaction.named_values import (
    FLAG,
    is_label,
    is_labelled_value,
    label_of,
    may_hold_named_value,
    named_values,
)
from contextplane.policy.redaction.rules import (
    ALWAYS_ACTIVE,
    MASK,
    REDACTIONS,
    UNNAMED,
    WEAK,
    FieldNames,
    RedactionWay,
    mask,
)
from contextplane.policy.redaction.schema_marks import SchemaMarks
from contextplane.policy.redaction.shapes import SHAPES, Shape, TextProfile
from contextplane.policy.regex_safety import lazy_regex

__all__ = ["MaskedText", "MaskedValue", "Redaction", "Redactor"]

_MASK_START = "[redacted:"
_PASSES = 8
"""A mask may bring to light what stood beside a value. After so many passes the whole text is masked."""

_NESTED = 4
"""A text in JSON may be JSON itself; deeper than this it is read as plain text."""

_BLANK = "\ufffc"
_LEAST_DIGITS = 8
_MEMO_LIMIT = 4096
_NO_VALUES = frozenset({"null", "true", "false"})
_TOKEN = lazy_regex(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++')


class Redaction(NamedTuple):
    """What was masked: the rule, how it was found, and where. Never the value.

    `place`: a JSON Pointer into a value or a text of JSON; else `character <n>`, or empty where it was found later.
    """

    rule: str
    way: RedactionWay
    place: str


class MaskedText(NamedTuple):
    """A text with its masks, and what was masked in it."""

    text: str
    redactions: tuple[Redaction, ...] = ()


class MaskedValue(NamedTuple):
    """A JSON value with its masks, and what was masked in it."""

    value: Any
    redactions: tuple[Redaction, ...] = ()


class _Edit(NamedTuple):
    start: int
    end: int
    text: str
    redactions: tuple[Redaction, ...]


class Redactor:
    """Masks by the rules of a pack. The rules about secrets are always active."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        self.active: Collection[str] = frozenset(rules) & REDACTIONS | frozenset(ALWAYS_ACTIVE)
        self._fields = FieldNames(self.active)
        self._names: dict[str, MaskedText] = {}
        self._shapes = tuple(
            (next(name for name in shape.rules if name in self.active), shape)
            for shape in SHAPES
            if not self.active.isdisjoint(shape.rules)
        )
        self._shapes_without_digit = tuple((rule, shape) for rule, shape in self._shapes if not shape.has_digit)

    def is_clear(self, text: str) -> bool:
        """Whether nothing in a text, or in any of several lines of text, can be masked: a fast test.

        Where it is not clear, there need not be anything to mask.
        """
        # An escape in JSON may stand for any character.
        if "\\" in text:
            return False
        profile = TextProfile(fold(text).text)
        if may_hold_secret(profile.text, profile.lowered):
            return False
        if any([shape.is_possible(profile) for _, shape in self._shapes_in(profile)]):  # noqa: C419  a list is faster
            return False
        return not may_hold_named_value(profile.text, profile.lowered, self._fields.rule)

    def mask_text(
        self, text: str, *, name: str = "", marks: SchemaMarks | None = None, must_be_json: bool = False
    ) -> MaskedText:
        """Mask a text. A text of JSON is masked member by member, and stays JSON.

        `name`: the member that the text is the value of. `marks`: the schema of it. `must_be_json`: with
        marks, a text that is no JSON is masked whole, because nothing says where the marked properties stand in it.
        """
        if marks is not None and must_be_json and not _is_json(text) and not _is_mask(text):
            return MaskedText(mask(UNNAMED), (Redaction(UNNAMED, "schema", ""),))
        return self._mask(text, name, marks, _NESTED)

    def mask_value(self, value: Json, *, marks: SchemaMarks | None = None) -> MaskedValue:
        """Mask a JSON value. It is the same object where there is nothing to mask."""
        text = msgspec.json.encode(value).decode()
        masked = self._mask(text, "", marks, _NESTED)
        if not masked.redactions:
            return MaskedValue(value)
        return MaskedValue(msgspec.json.decode(masked.text), masked.redactions)

    def mask_member(self, path: Sequence[str], value: Json) -> MaskedValue:
        """Mask a value that stands under these names, each in the object of the one before."""
        for name in reversed(path):
            value = {name: value}
        masked = self.mask_value(value)
        part = masked.value
        for _ in path:
            part = next(iter(part.values())) if isinstance(part, dict) else part
        return MaskedValue(part, masked.redactions)

    def _mask(self, text: str, name: str, marks: SchemaMarks | None, depth: int) -> MaskedText:
        if marks is None and self.is_clear(text):
            return MaskedText(text)
        redactions: list[Redaction] = []
        for n in range(_PASSES):
            if depth and _is_json(text):
                edits = _JsonPass(self, text, depth).edits(marks)
            else:
                edits = list(self._plain_edits(text, name))
            if not edits:
                return MaskedText(text, tuple(redactions))
            text = _apply(text, edits)
            for edit in edits:
                redactions += edit.redactions if n == 0 else (item._replace(place="") for item in edit.redactions)
        return MaskedText(mask(redactions[-1].rule), tuple(redactions))

    def field_rule(self, name: str) -> str | None:
        """The active rule that masks members of this name."""
        return self._fields.rule(name)

    def is_count(self, name: str, raw: str) -> bool:
        """Whether a value in JSON is a number under the plural of a field: how many there are."""
        return raw[0] in "-0123456789" and self._fields.is_plural(name)

    def mask_name(self, name: str) -> MaskedText:
        """Mask the name of a member, which may be a value. Names are few, so the results are kept."""
        masked = self._names.get(name)
        if masked is None:
            masked = MaskedText(name) if _is_short_word(name) else self._mask(name, "", None, 0)
            if len(self._names) >= _MEMO_LIMIT:
                self._names.clear()
            self._names[name] = masked
        return masked

    def _plain_edits(self, text: str, name: str) -> Iterator[_Edit]:
        """Yield the edits of a text that is no JSON, in order and apart from each other."""
        folded = fold(text)
        plain = folded.text
        if _MASK_START in plain:
            plain = MASK().sub(lambda match: _BLANK * len(match[0]), plain)
        spans: list[_Span] = [(start, end, rule, False, "shape") for start, end, rule in self._shape_spans(plain, name)]
        spans += [(*span, "field") for span in self._named_spans(plain)]
        # A span of nothing but masks is done.
        yield from _merge(folded, [span for span in spans if plain[span[0] : span[1]].strip(_BLANK)])

    def _shape_spans(self, text: str, name: str) -> Iterator[tuple[int, int, str]]:
        profile = TextProfile(text, name)
        if may_hold_secret(text, profile.lowered):
            yield from secret_spans(text)
        for rule, shape in self._shapes_in(profile):
            if shape.is_possible(profile):
                yield from ((start, end, rule) for start, end in shape.find(profile))

    def _shapes_in(self, profile: TextProfile) -> Sequence[tuple[str, Shape]]:
        """The active shapes, without those that a text without a digit cannot hold."""
        return self._shapes if profile.has_digit else self._shapes_without_digit

    def _named_spans(self, text: str) -> Iterator[tuple[int, int, str, bool]]:
        """Yield the values that stand beside their names, and whether each is a number, which gets quotes."""
        for value in named_values(text):
            rule = self._fields.rule(value.name)
            if rule is None or (value.is_exact and rule in WEAK):
                continue
            is_count = value.is_number and self._fields.is_plural(value.name)
            if text[value.start : value.end].strip() and not is_count:
                yield value.start, value.end, rule, value.is_number


_Span = tuple[int, int, str, bool, RedactionWay]
"""Start and end, the rule, whether the mask needs quotes, and how it was found."""


def _merge(folded: FoldedText, spans: list[_Span]) -> Iterator[_Edit]:
    """Yield an edit for each group of spans that overlap: the rule of the first one masks all of it."""
    # A stable sort: of two that begin alike, the one found first names the rule.
    spans.sort(key=lambda span: span[0])
    n = 0
    while n < len(spans):
        start, end, rule, quoted, way = spans[n]
        n += 1
        while n < len(spans) and spans[n][0] < end:
            end, quoted = max(end, spans[n][1]), quoted or spans[n][3]
            n += 1
        first = folded.place(start)
        shown = f'"{mask(rule)}"' if quoted else mask(rule)
        yield _Edit(first, folded.place(end - 1) + 1, shown, (Redaction(rule, way, f"character {first}"),))


def _apply(text: str, edits: list[_Edit]) -> str:
    pieces, end = [], 0
    for edit in edits:
        pieces += [text[end : edit.start], edit.text]
        end = edit.end
    return "".join([*pieces, text[end:]])


def _is_json(text: str) -> bool:
    """Whether a text is a JSON object or list."""
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def _is_short_word(text: str) -> bool:
    """Whether a text is a word of few letters or digits: every shape is longer."""
    return len(text) <= _LEAST_DIGITS and text.isalnum()


def _is_mask(text: str) -> bool:
    return text.startswith(_MASK_START) and MASK().fullmatch(text) is not None


# --- JSON ---


class _Frame:
    """An object or a list that is being read.

    `labels`: what members such as `key` say of the values beside them, which are in `values` with their places.
    `flag`: the element of a list before this one, if it is the flag of a command.
    """

    __slots__ = ("count", "edits", "flag", "is_key", "is_object", "labels", "marks", "name", "names", "start", "values")

    def __init__(self, start: int, edits: int, *, is_object: bool, marks: SchemaMarks | None) -> None:
        self.start = start
        self.edits = edits
        self.is_object = is_object
        self.marks = marks
        self.is_key = is_object
        self.name = ""
        self.names: dict[str, int] = {}
        self.count = 0
        self.flag = ""
        self.labels: list[str] = []
        self.values: list[tuple[int, int, str]] = []


class _Hidden(NamedTuple):
    """An object or a list that is masked whole: its depth, where it begins, and why."""

    depth: int
    start: int
    redaction: Redaction


class _JsonPass:
    """One pass over a text of JSON, token by token, which keeps all that is not masked as it stands."""

    def __init__(self, redactor: Redactor, text: str, depth: int) -> None:
        self._redactor = redactor
        self._text = text
        self._depth = depth
        self._frames: list[_Frame] = []
        self._hidden: _Hidden | None = None
        self._edits: list[_Edit] = []

    def edits(self, marks: SchemaMarks | None) -> list[_Edit]:
        """The edits in order."""
        for token in _TOKEN().finditer(self._text):
            start, end = token.span()
            first = self._text[start]
            frame = self._frames[-1] if self._frames else None
            if first in "]}":
                self._end_frame(start, end)
            elif frame is not None and first in ":,":
                frame.is_key = first == "," and frame.is_object
                frame.count += first == ","
            elif frame is not None and frame.is_key:
                self._edits += self._name_edits(start, end, frame)
            else:
                here = _marks_here(frame, marks)
                rule, way = self._rule_here(frame, here)
                if first in "{[":
                    if self._hidden is None and rule is not None:
                        self._hidden = _Hidden(len(self._frames), start, Redaction(rule, way, self._place()))
                    self._frames.append(_Frame(start, len(self._edits), is_object=first == "{", marks=here))
                elif self._hidden is None:
                    self._edits += self._leaf_edits(start, end, rule, way)
                    self._note_leaf(start, end, frame)
        return self._edits

    def _end_frame(self, start: int, end: int) -> None:
        """Leave an object or a list. One that is masked whole gets its edit, as do values that a label names."""
        frame = self._frames.pop()
        hidden = self._hidden
        if hidden is not None:
            if len(self._frames) > hidden.depth:
                return
            self._hidden = None
            if self._text[hidden.start + 1 : start].strip():
                self._edits.append(_Edit(hidden.start, end, f'"{mask(hidden.redaction.rule)}"', (hidden.redaction,)))
        labels = frame.labels if frame.values else ()
        rule = next(filter(None, map(self._redactor.field_rule, labels)), None)
        if rule is not None:
            self._mask_labelled(frame, rule)
        around = self._frames[-1] if self._frames else None
        if around is not None:
            around.flag = ""
            if around.is_object and is_labelled_value(around.name) and self._text[frame.start + 1 : start].strip():
                around.values.append((frame.start, end, self._place()))

    def _mask_labelled(self, frame: _Frame, rule: str) -> None:
        """Mask the values of an object that a label in it names, in place of what was masked inside of them."""
        edits = self._edits[frame.edits :]
        for start, end, place in frame.values:
            if not any(edit.start == start and _is_mask(edit.text.strip('"')) for edit in edits):
                edits = [edit for edit in edits if not start <= edit.start < end]
                edits.append(_Edit(start, end, f'"{mask(rule)}"', (Redaction(rule, "field", place),)))
        self._edits[frame.edits :] = sorted(edits, key=lambda edit: edit.start)

    def _note_leaf(self, start: int, end: int, frame: _Frame | None) -> None:
        """Note a label, a value that a label may name, or the flag of a command."""
        if frame is None:
            return
        raw = self._text[start:end]
        content = _decode_text(raw) if raw[0] == '"' else ""
        if not frame.is_object:
            flag = FLAG().fullmatch(content) if content.startswith("-") else None
            frame.flag = flag["name"] if flag else ""
        elif is_label(frame.name):
            frame.labels.append(label_of(content))
        elif is_labelled_value(frame.name) and raw not in _NO_VALUES and raw.strip('" ') and not _is_mask(content):
            frame.values.append((start, end, self._place()))

    def _rule_here(self, frame: _Frame | None, here: SchemaMarks | None) -> tuple[str | None, RedactionWay]:
        """The rule that masks the value that begins now, be it a text, an object or a list."""
        by_name = None
        if frame is not None and frame.is_object:
            by_name = self._redactor.field_rule(frame.name)
        elif frame is not None and frame.flag:
            by_name = self._redactor.field_rule(frame.flag)
            by_name = None if by_name in WEAK else by_name
        marked = here.rule if here is not None else None
        if marked is not None:
            return (by_name or marked) if marked == UNNAMED else marked, "schema"
        return by_name, "field"

    def _name_edits(self, start: int, end: int, frame: _Frame) -> Iterator[_Edit]:
        """Yield the edit of the name of a member that is itself something to mask."""
        frame.name = _decode_text(self._text[start:end])
        if self._hidden is not None:
            return
        masked = self._redactor.mask_name(frame.name)
        if masked.redactions:
            number = frame.names[masked.text] = frame.names.get(masked.text, 0) + 1
            frame.name = masked.text if number == 1 else f"{masked.text} {number}"
            place = self._place()
            items = tuple(Redaction(item.rule, item.way, place) for item in masked.redactions)
            yield _Edit(start, end, msgspec.json.encode(frame.name).decode(), items)

    def _leaf_edits(self, start: int, end: int, rule: str | None, way: RedactionWay) -> Iterator[_Edit]:
        raw = self._text[start:end]
        is_text = raw[0] == '"'
        content = _decode_text(raw) if is_text else raw
        # No value is nothing to mask; true and false say nothing of a person, unless a schema marks them.
        is_value = raw not in _NO_VALUES if way == "field" else raw != "null"
        if rule is not None and way == "field":
            frame = self._frames[-1]
            is_next_flag = not frame.is_object and FLAG().fullmatch(content) is not None
            is_value = is_value and not is_next_flag and not self._redactor.is_count(frame.name, raw)
        if rule is not None and is_value and content.strip() and not _is_mask(content):
            yield _Edit(start, end, f'"{mask(rule)}"', (Redaction(rule, way, self._place()),))
        elif not _is_short_word(content) and (is_text or len(raw) >= _LEAST_DIGITS):
            name = self._frames[-1].name if self._frames else ""
            masked = self._redactor._mask(content, name, None, self._depth - 1 if is_text else 0)  # noqa: SLF001
            if masked.redactions:
                place = self._place()
                items = tuple(Redaction(item.rule, item.way, place) for item in masked.redactions)
                yield _Edit(start, end, msgspec.json.encode(masked.text).decode(), items)

    def _place(self) -> str:
        return pointer([frame.name if frame.is_object else frame.count for frame in self._frames])


def _marks_here(frame: _Frame | None, marks: SchemaMarks | None) -> SchemaMarks | None:
    if frame is None:
        return marks
    if frame.marks is None:
        return None
    return frame.marks.member(frame.name) if frame.is_object else frame.marks.element(frame.count)


def _decode_text(raw: str) -> str:
    return str(msgspec.json.decode(raw)) if "\\" in raw else raw[1:-1]
