"""From a log to an execution pack: every content an object, the manifest an object, its name registered."""

import base64
import binascii
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution_log import Content, ExecutionLog
from contextplane.model.ids import Digest
from contextplane.model.json_cut import LongText
from contextplane.model.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step, manifest_bytes
from contextplane.ports.objects import Batch
from contextplane.ports.sources import Sources

__all__ = ["InvalidBase64", "stage_log"]


class InvalidBase64(ContextPlaneError):
    """A content that is said to be base64 and is not."""

    code: ClassVar[str] = "content_base64_invalid"
    family: ClassVar[Family] = "refused"


def stage_log(log: ExecutionLog, parent: Digest | None, batch: Batch, sources: Sources) -> tuple[Manifest, Digest]:
    """Put everything that a log contains, and its manifest last; nothing is visible before the batch is committed."""
    put = _Putter(batch, sources)
    manifest = Manifest(
        created=str(log.created),
        model=Model(identifier=log.model, parameters=log.model_parameters),
        system_prompt=put.ref(log.system_prompt),
        prompts=tuple(Prompt(role=one.role, content_ref=put.ref(one.content)) for one in log.prompts),
        inputs=tuple(put.input(one.name, one.content) for one in log.inputs),
        steps=tuple(
            Step(
                index=one.index,
                type=one.type,
                tool=one.tool,
                parameters=one.parameters,
                output_ref="" if one.output is None else put.ref(one.output),
                deterministic=one.deterministic,
                timestamp=str(one.timestamp),
            )
            for one in log.steps
        ),
        outputs=tuple(Output(name=one.name, content_ref=put.ref(one.content)) for one in log.outputs),
        environment=Environment(os=log.os, runtime=log.runtime, tool_versions=log.tool_versions),
        parent="" if parent is None else str(parent),
    )
    return manifest, batch.put(manifest_bytes(manifest))


class _Putter:
    """Puts contents of a log, whichever way they are given."""

    def __init__(self, batch: Batch, sources: Sources) -> None:
        self._batch = batch
        self._sources = sources

    def input(self, name: str, content: Content) -> Input:
        digest, size = self._put(content)
        return Input(name=name, content_ref=str(digest), size=size)

    def ref(self, content: Content) -> str:
        return str(self._put(content)[0])

    def _put(self, content: Content) -> tuple[Digest, int]:
        try:
            if content.how == "path":
                stored = self._batch.put_stream(self._sources.chunks(_bytes(content).decode()))
                return stored.digest, stored.size
            data = _decoded(_bytes(content)) if content.how == "base64" else _bytes(content)
        except ContextPlaneError as error:
            error.at = content.at if error.at is None else f"{content.at} ({error.at})"
            raise
        return self._batch.put(data), len(data)


def _bytes(content: Content) -> bytes:
    return content.value.encoded() if isinstance(content.value, LongText) else content.value.encode()


def _decoded(data: bytes) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InvalidBase64(f"not base64: {error}", hint="use the standard alphabet, padded") from error
