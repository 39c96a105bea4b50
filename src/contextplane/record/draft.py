"""Drafts of forks: the manifest of a recorded run as JSON that people edit, and its strict reader.

Writing is lenient about manifests of other programs. Reading is strict, and reports every problem at once. Nothing is
looked up here: whether the objects that a draft refers to exist is checked by the caller, against the store.
"""

from collections.abc import Callable
from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.execution.log import REASONING
from contextplane.model.execution.manifest import (
    Environment,
    Input,
    Manifest,
    Model,
    Output,
    Prompt,
    Step,
    manifest_bytes,
)
from contextplane.model.execution.references import MAX_MANIFEST_BYTES, VERSION
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import decode_leniently, parse
from contextplane.model.json.pointer import pointer
from contextplane.model.problems import DocumentInvalid, DocumentReader, Problem, type_name
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value

__all__ = [
    "MAX_DRAFT_BYTES",
    "ForkDraft",
    "InvalidDraft",
    "PartialDraft",
    "draft_text",
    "fill_input_sizes",
    "fork_key",
    "is_same_run",
    "read_draft",
    "read_partial_draft",
]

_TOP = (
    *("version", "hash", "created", "model", "system_prompt", "prompts"),
    *("inputs", "steps", "outputs", "environment", "parent"),
)
MAX_DRAFT_BYTES = 2 * MAX_MANIFEST_BYTES
"""The size limit of a draft file. A draft that would exceed it with indentation is written without."""

_STEP = ("index", "type", "tool", "parameters", "output_ref", "deterministic", "timestamp")


class InvalidDraft(DocumentInvalid):
    """A draft that cannot become an execution pack.

    `details.problems` lists everything that is wrong with it.
    """

    code: ClassVar[str] = "draft_invalid"
    way_out: ClassVar[str] = "edit the draft, then finalize it again"

    def __init__(self, problems: tuple[Problem, ...], refs: "tuple[tuple[str, Digest], ...]" = ()) -> None:
        """`refs`: the objects that it refers to nevertheless, the parent included, each with its place."""
        super().__init__(problems)
        self.refs = refs


class ForkDraft(Value, frozen=True):
    """A valid draft. `refs`: the place and the digest of every reference, to contents and to the parent."""

    manifest: Manifest
    parent: Digest
    refs: tuple[tuple[str, Digest], ...]


def draft_text(manifest: Manifest, parent: Digest) -> bytes:
    """The draft of a fork of `parent`, indented, in the field order of the reference program.

    A draft that indentation would make too large is one line: every fork can be read back.
    """
    fields = {
        "version": manifest.version,
        "hash": "",
        "created": manifest.created,
        "model": {"identifier": manifest.model.identifier, "parameters": manifest.model.parameters},
        "system_prompt": manifest.system_prompt,
        "prompts": [{"role": prompt.role, "content_ref": prompt.content_ref} for prompt in manifest.prompts],
        "inputs": [
            {"name": entry.name, "content_ref": entry.content_ref, "size": entry.size} for entry in manifest.inputs
        ],
        "steps": [{field: getattr(step, field) for field in _STEP} for step in manifest.steps],
        "outputs": [{"name": output.name, "content_ref": output.content_ref} for output in manifest.outputs],
        "environment": {
            "os": manifest.environment.os,
            "runtime": manifest.environment.runtime,
            "tool_versions": manifest.environment.tool_versions,
        },
        "parent": str(parent),
    }
    compact = msgspec.json.encode(fields)
    indented = msgspec.json.format(compact, indent=2)
    return (indented if len(indented) < MAX_DRAFT_BYTES else compact) + b"\n"


class PartialDraft(Value, frozen=True):
    """What can be read of a draft whose JSON is refused: the problems of its form, and its references."""

    problems: tuple[Problem, ...]
    refs: tuple[tuple[str, Digest], ...]


def read_partial_draft(data: bytes) -> PartialDraft:
    """Read as much as possible of a draft whose JSON is refused."""
    value, reader = decode_leniently(data), _Reader()
    if value is not None:
        reader.manifest(value)
    return PartialDraft(problems=tuple(reader.problems), refs=tuple(reader.refs))


def read_draft(data: bytes) -> ForkDraft:
    """Read an edited draft, or raise `InvalidDraft` with all problems."""
    reader = _Reader()
    manifest = reader.manifest(parse(data).value)
    if reader.problems:
        raise InvalidDraft(tuple(reader.problems), tuple(reader.refs))
    return ForkDraft(manifest=manifest, parent=Digest.parse(manifest.parent), refs=tuple(reader.refs))


def fill_input_sizes(manifest: Manifest, size_of: Callable[[Digest], int]) -> Manifest:
    """Set the size of each input to that of its content, so that editing a reference needs no counting."""
    inputs = tuple(replace(entry, size=size_of(Digest.parse(entry.content_ref))) for entry in manifest.inputs)
    return replace(manifest, inputs=inputs)


def fork_key(draft: ForkDraft) -> Digest:
    """The identity of a fork: its manifest without times and sizes, and its parent."""
    return Digest.of(_comparable_bytes(draft.manifest, str(draft.parent)))


def is_same_run(manifest: Manifest, other: Manifest) -> bool:
    """Whether two manifests describe the same run. When they were made, and their parents, do not matter."""
    try:
        return _comparable_bytes(manifest) == _comparable_bytes(other)
    except JsonRefused:
        return False  # a manifest of another program without a canonical form differs from every manifest that has one


def _comparable_bytes(manifest: Manifest, parent: str = "") -> bytes:
    """The bytes of a manifest without creation time and sizes.

    Bytes, because `True == 1` in Python. A size follows from its content.
    """
    steps = tuple(replace(step, timestamp=_normalize_time(step.timestamp)) for step in manifest.steps)
    inputs = tuple(replace(entry, size=0) for entry in manifest.inputs)
    return manifest_bytes(replace(manifest, created="", parent=parent, steps=steps, inputs=inputs))


def _normalize_time(text: str) -> str:
    try:
        return str(Timestamp.parse(text) if text else NO_TIME)
    except ContextPlaneError:
        return text


class _Reader(DocumentReader):
    """Reads a draft, and collects its references."""

    DOCUMENT: ClassVar[str] = "draft"

    def __init__(self) -> None:
        super().__init__()
        self.refs: list[tuple[str, Digest]] = []

    def manifest(self, value: Json) -> Manifest:
        top = self._object(value, "", _TOP)
        version = self._text(top, "version", "", required=True)
        if version not in {"", VERSION}:
            self.note("/version", f"must be {VERSION!r}")
        if self._text(top, "hash", ""):
            self.note("/hash", "must be empty: a hash cannot contain itself")
        model = self._object(top.get("model"), "/model", ("identifier", "parameters"))
        environment = self._object(top.get("environment"), "/environment", ("os", "runtime", "tool_versions"))
        return Manifest(
            created=self._time(top, "created", ""),
            model=Model(
                identifier=self._text(model, "identifier", "/model", required=True),
                parameters=self._typed_field(model, "parameters", "/model", dict),
            ),
            system_prompt=self._ref(top, "system_prompt", ""),
            prompts=tuple(self._prompt(value, at) for value, at in self._list(top, "prompts")),
            inputs=tuple(self._input(value, at) for value, at in self._list(top, "inputs")),
            steps=tuple(self._step(value, at, n) for n, (value, at) in enumerate(self._list(top, "steps"))),
            outputs=tuple(self._output(value, at) for value, at in self._list(top, "outputs")),
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
        self._typed_field(entry, "size", at, int)  # the content itself says how long it is
        return Input(name=self._text(entry, "name", at), content_ref=self._ref(entry, "content_ref", at))

    def _output(self, value: Json, at: str) -> Output:
        entry = self._object(value, at, ("name", "content_ref"))
        return Output(
            name=self._text(entry, "name", at, required=True), content_ref=self._ref(entry, "content_ref", at)
        )

    def _step(self, value: Json, at: str, position: int) -> Step:
        entry = self._object(value, at, _STEP)
        kind = self._text(entry, "type", at, required=True)
        index = self._typed_field(entry, "index", at, int)
        return Step(
            index=position if index is None else index,
            type=kind,
            tool=self._text(entry, "tool", at, required=kind != REASONING),
            parameters=self._typed_field(entry, "parameters", at, dict),
            output_ref=self._ref(entry, "output_ref", at, required=False),
            deterministic=bool(self._typed_field(entry, "deterministic", at, bool)),
            timestamp=self._time(entry, "timestamp", at),
        )

    def _ref(self, entry: dict[str, Json], key: str, at: str, *, required: bool = True) -> str:
        """Read a reference to a content or to the parent, and add it to `refs`."""
        text = self._digest(entry, key, at, required=required)
        if text:
            self.refs.append((f"{at}/{key}", Digest.parse(text)))
        return text

    def _digest(self, entry: dict[str, Json], key: str, at: str, *, required: bool = True) -> str:
        text = self._text(entry, key, at, required=required)
        try:
            return str(Digest.parse(text)) if text else ""
        except ContextPlaneError as error:
            self.note(f"{at}/{key}", f"{error.message}; the form is sha256:<64 lower-case hex>")
            return ""

    def _text(self, entry: dict[str, Json], key: str, at: str, *, required: bool = False) -> str:
        value = entry.get(key)
        if required and (value is None or value == ""):
            self.note(f"{at}/{key}", "is missing")
        return self._typed_field(entry, key, at, str) or ""

    def _time(self, entry: dict[str, Json], key: str, at: str) -> str:
        text = self._text(entry, key, at)
        try:
            return str(Timestamp.parse(text) if text else NO_TIME)
        except ContextPlaneError as error:
            self.note(f"{at}/{key}", f"{error.message}: {error.hint}")
            return ""

    def _versions(self, environment: dict[str, Json]) -> dict[str, str] | None:
        versions = self._typed_field(environment, "tool_versions", "/environment", dict)
        for tool, version in (versions or {}).items():
            if type(version) is not str:
                self.note(f"/environment/tool_versions{pointer([tool])}", f"must be text, not {type_name(version)}")
        return cast("dict[str, str] | None", versions)
