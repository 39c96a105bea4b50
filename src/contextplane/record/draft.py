"""Drafts: the manifest of a recorded run as JSON that people edit, and back, checked.

Writing is lenient about what others stored. Reading is strict, and reports everything that is wrong at once. It looks
nothing up: whether what a draft refers to is there, the store must say.
"""

from collections.abc import Callable
from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.execution.log import REASONING
from contextplane.model.execution.manifest import (
    MANIFEST_MOST,
    VERSION,
    Environment,
    Input,
    Manifest,
    Model,
    Output,
    Prompt,
    Step,
    manifest_bytes,
)
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import decoded, parse
from contextplane.model.json.pointer import pointer
from contextplane.model.problems import DocumentInvalid, NotingReader, Problem, type_name
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value

__all__ = [
    "DRAFT_MOST",
    "Draft",
    "DraftSoFar",
    "InvalidDraft",
    "draft_so_far",
    "draft_text",
    "fork_key",
    "read_draft",
    "same_run",
    "with_sizes",
]

_TOP = (
    *("version", "hash", "created", "model", "system_prompt", "prompts"),
    *("inputs", "steps", "outputs", "environment", "parent"),
)
DRAFT_MOST = 2 * MANIFEST_MOST
"""A larger file is no draft. What would be larger when it is indented is not."""

_STEP = ("index", "type", "tool", "parameters", "output_ref", "deterministic", "timestamp")


class InvalidDraft(DocumentInvalid):
    """A draft that cannot become an execution pack. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "draft_invalid"
    way_out: ClassVar[str] = "edit the draft, then finalize it again"

    def __init__(self, problems: tuple[Problem, ...], refs: "tuple[tuple[str, Digest], ...]" = ()) -> None:
        """`refs`: what it refers to all the same, its parent too, each with its place."""
        super().__init__(problems)
        self.refs = refs


class Draft(Value, frozen=True):
    """A draft whose form is right. `refs`: where each content, and the parent, is referred to, and its digest."""

    manifest: Manifest
    parent: Digest
    refs: tuple[tuple[str, Digest], ...]


def draft_text(manifest: Manifest, parent: Digest) -> bytes:
    """The draft of a run that is like `parent`: in the field order of the reference program, indented.

    Where indenting makes too much of it, it stands in one line: whatever is forked can be read back.
    """
    fields = {
        "version": manifest.version,
        "hash": "",
        "created": manifest.created,
        "model": {"identifier": manifest.model.identifier, "parameters": manifest.model.parameters},
        "system_prompt": manifest.system_prompt,
        "prompts": [{"role": prompt.role, "content_ref": prompt.content_ref} for prompt in manifest.prompts],
        "inputs": [{"name": one.name, "content_ref": one.content_ref, "size": one.size} for one in manifest.inputs],
        "steps": [{field: getattr(step, field) for field in _STEP} for step in manifest.steps],
        "outputs": [{"name": output.name, "content_ref": output.content_ref} for output in manifest.outputs],
        "environment": {
            "os": manifest.environment.os,
            "runtime": manifest.environment.runtime,
            "tool_versions": manifest.environment.tool_versions,
        },
        "parent": str(parent),
    }
    plain = msgspec.json.encode(fields)
    indented = msgspec.json.format(plain, indent=2)
    return (indented if len(indented) < DRAFT_MOST else plain) + b"\n"


class DraftSoFar(Value, frozen=True):
    """What can be told of a draft whose JSON is refused: what is wrong with its form, and what it refers to."""

    problems: tuple[Problem, ...]
    refs: tuple[tuple[str, Digest], ...]


def draft_so_far(data: bytes) -> DraftSoFar:
    value, reader = decoded(data), _Reader()
    if value is not None:
        reader.manifest(value)
    return DraftSoFar(problems=tuple(reader.problems), refs=tuple(reader.refs))


def read_draft(data: bytes) -> Draft:
    """Read an edited draft, or raise `InvalidDraft` with everything that is wrong with it."""
    reader = _Reader()
    manifest = reader.manifest(parse(data).value)
    if reader.problems:
        raise InvalidDraft(tuple(reader.problems), tuple(reader.refs))
    return Draft(manifest=manifest, parent=Digest.parse(manifest.parent), refs=tuple(reader.refs))


def with_sizes(manifest: Manifest, size_of: Callable[[Digest], int]) -> Manifest:
    """The same, each input with the size that its content has: whoever edits a reference need not count bytes."""
    inputs = tuple(replace(one, size=size_of(Digest.parse(one.content_ref))) for one in manifest.inputs)
    return replace(manifest, inputs=inputs)


def fork_key(draft: Draft) -> Digest:
    """What a fork is known by: all that it says and whose fork it is, whenever that was said."""
    return Digest.of(_essence(draft.manifest, str(draft.parent)))


def same_run(manifest: Manifest, other: Manifest) -> bool:
    """Whether two manifests tell the same run, apart from when they were made and what they were forked from."""
    try:
        return _essence(manifest) == _essence(other)
    except JsonRefused:
        return False  # one of them was stored by others and has no canonical form; what has one differs from it


def _essence(manifest: Manifest, parent: str = "") -> bytes:
    """Bytes, because to Python `true` and `1` are equal. A size follows from its content and says nothing by itself."""
    steps = tuple(replace(step, timestamp=_moment(step.timestamp)) for step in manifest.steps)
    inputs = tuple(replace(one, size=0) for one in manifest.inputs)
    return manifest_bytes(replace(manifest, created="", parent=parent, steps=steps, inputs=inputs))


def _moment(text: str) -> str:
    try:
        return str(Timestamp.parse(text) if text else NO_TIME)
    except ContextPlaneError:
        return text


class _Reader(NotingReader):
    """Reads a draft, and keeps what it refers to."""

    DOCUMENT: ClassVar[str] = "draft"

    def __init__(self) -> None:
        super().__init__()
        self.refs: list[tuple[str, Digest]] = []

    def manifest(self, value: Json) -> Manifest:
        top = self._object(value, "", _TOP)
        version = self._text(top, "version", "", required=True)
        if version not in {"", VERSION}:
            self._note("/version", f"must be {VERSION!r}")
        if self._text(top, "hash", ""):
            self._note("/hash", "must be empty: a hash cannot contain itself")
        model = self._object(top.get("model"), "/model", ("identifier", "parameters"))
        environment = self._object(top.get("environment"), "/environment", ("os", "runtime", "tool_versions"))
        return Manifest(
            created=self._time(top, "created", ""),
            model=Model(
                identifier=self._text(model, "identifier", "/model", required=True),
                parameters=self._typed(model, "parameters", "/model", dict),
            ),
            system_prompt=self._ref(top, "system_prompt", ""),
            prompts=tuple(self._prompt(one, at) for one, at in self._list(top, "prompts")),
            inputs=tuple(self._input(one, at) for one, at in self._list(top, "inputs")),
            steps=tuple(self._step(one, at, n) for n, (one, at) in enumerate(self._list(top, "steps"))),
            outputs=tuple(self._output(one, at) for one, at in self._list(top, "outputs")),
            environment=Environment(
                os=self._text(environment, "os", "/environment", required=True),
                runtime=self._text(environment, "runtime", "/environment", required=True),
                tool_versions=self._versions(environment),
            ),
            parent=self._ref(top, "parent", ""),
        )

    def _prompt(self, value: Json, at: str) -> Prompt:
        entry = self._object(value, at, ("role", "content_ref"))
        return Prompt(role=self._text(entry, "role", at), content_ref=self._ref(entry, "content_ref", at))

    def _input(self, value: Json, at: str) -> Input:
        entry = self._object(value, at, ("name", "content_ref", "size"))
        self._typed(entry, "size", at, int)  # the content itself says how long it is
        return Input(name=self._text(entry, "name", at), content_ref=self._ref(entry, "content_ref", at))

    def _output(self, value: Json, at: str) -> Output:
        entry = self._object(value, at, ("name", "content_ref"))
        return Output(
            name=self._text(entry, "name", at, required=True), content_ref=self._ref(entry, "content_ref", at)
        )

    def _step(self, value: Json, at: str, position: int) -> Step:
        entry = self._object(value, at, _STEP)
        kind = self._text(entry, "type", at, required=True)
        index = self._typed(entry, "index", at, int)
        return Step(
            index=position if index is None else index,
            type=kind,
            tool=self._text(entry, "tool", at, required=kind != REASONING),
            parameters=self._typed(entry, "parameters", at, dict),
            output_ref=self._ref(entry, "output_ref", at, required=False),
            deterministic=bool(self._typed(entry, "deterministic", at, bool)),
            timestamp=self._time(entry, "timestamp", at),
        )

    def _ref(self, entry: dict[str, Json], key: str, at: str, *, required: bool = True) -> str:
        """A reference to a content, or to the parent, which is remembered."""
        text = self._digest(entry, key, at, required=required)
        if text:
            self.refs.append((f"{at}/{key}", Digest.parse(text)))
        return text

    def _digest(self, entry: dict[str, Json], key: str, at: str, *, required: bool = True) -> str:
        text = self._text(entry, key, at, required=required)
        try:
            return str(Digest.parse(text)) if text else ""
        except ContextPlaneError as error:
            self._note(f"{at}/{key}", f"{error.message}; the form is sha256:<64 lower-case hex>")
            return ""

    def _text(self, entry: dict[str, Json], key: str, at: str, *, required: bool = False) -> str:
        found = entry.get(key)
        if required and (found is None or found == ""):
            self._note(f"{at}/{key}", "is missing")
        return self._typed(entry, key, at, str) or ""

    def _time(self, entry: dict[str, Json], key: str, at: str) -> str:
        text = self._text(entry, key, at)
        try:
            return str(Timestamp.parse(text) if text else NO_TIME)
        except ContextPlaneError as error:
            self._note(f"{at}/{key}", f"{error.message}: {error.hint}")
            return ""

    def _versions(self, environment: dict[str, Json]) -> dict[str, str] | None:
        versions = self._typed(environment, "tool_versions", "/environment", dict)
        for tool, version in (versions or {}).items():
            if type(version) is not str:
                self._note(f"/environment/tool_versions{pointer([tool])}", f"must be text, not {type_name(version)}")
        return cast("dict[str, str] | None", versions)
