"""From a log to an execution pack: every content an object, and the manifest that names them."""

from collections.abc import Iterator, Sequence
from functools import cache

from contextplane.model.canonical import Json
from contextplane.model.execution import ManifestRefs, references_of
from contextplane.model.execution_log import Content, ExecutionLog
from contextplane.model.ids import Digest
from contextplane.model.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step, manifest_bytes
from contextplane.model.value import Value
from contextplane.policy.secrets import Looked, looked_at
from contextplane.ports.objects import Batch, Stored
from contextplane.ports.sources import Sources
from contextplane.record.contents import PutContent, PutContents, put_contents

__all__ = ["Staged", "stage_log"]


class Staged(Value, frozen=True):
    """A pack whose objects are in a batch. `suspects`: where something looks like a secret, and like which.

    `raw`: the manifest's bytes, `refs`: what it refers to. `unsearched`: of what only the beginning was looked at.
    `at_hand`: the bytes of short contents.
    """

    digest: Digest
    manifest: Manifest
    raw: bytes
    refs: ManifestRefs | None
    contents: tuple[Stored, ...]
    at_hand: dict[Digest, bytes]
    suspects: tuple[tuple[str, str], ...]
    unsearched: tuple[str, ...]


def stage_log(log: ExecutionLog, parent: Digest | None, batch: Batch, sources: Sources) -> Staged:
    """Put everything that a log contains, and its manifest last; nothing is visible before the batch is committed."""
    given = [
        ("system_prompt", log.system_prompt),
        *(("prompts", one.content) for one in log.prompts),
        *(("inputs", one.content) for one in log.inputs),
        *(("steps", one.output) for one in log.steps if one.output is not None),
        *(("outputs", one.content) for one in log.outputs),
    ]
    contents = [content for _, content in given]
    put = put_contents(contents, batch, sources)
    manifest = _manifest(log, parent, iter(put.each))
    raw = manifest_bytes(manifest)
    digest = batch.put(raw)
    named = [(role, done.stored.digest) for (role, _), done in zip(given, put.each, strict=True)]
    if parent is not None:
        named.append(("parent", parent))
    beside = tuple(_beside_contents(log))
    return Staged(
        digest=digest,
        manifest=manifest,
        raw=raw,
        refs=references_of(named, raw),
        contents=tuple(dict.fromkeys(one.stored for one in put.each)),
        at_hand=put.at_hand,
        suspects=(*_suspects(contents, put), *((at, kind) for at, looked in beside for kind in looked.kinds)),
        unsearched=(
            *(one.at for one, done in zip(contents, put.each, strict=True) if not done.searched),
            *(at for at, looked in beside if not looked.whole),
        ),
    )


def _manifest(log: ExecutionLog, parent: Digest | None, following: Iterator[PutContent]) -> Manifest:
    """The manifest of a log. Its fields are filled in the order in which the contents were put."""

    def ref() -> str:
        return str(next(following).stored.digest)

    # Very many steps of one moment are nothing unusual: a log that tells no time has no other.
    written = cache(str)
    system_prompt = ref()
    prompts = tuple(Prompt(role=one.role, content_ref=ref()) for one in log.prompts)
    inputs = tuple(
        Input(name=one.name, content_ref=str(stored.digest), size=stored.size)
        for one, stored in ((one, next(following).stored) for one in log.inputs)
    )
    steps = tuple(
        Step(
            index=one.index,
            type=one.type,
            tool=one.tool,
            parameters=one.parameters,
            output_ref="" if one.output is None else ref(),
            deterministic=one.deterministic,
            timestamp=written(one.timestamp),
        )
        for one in log.steps
    )
    return Manifest(
        created=str(log.created),
        model=Model(identifier=log.model, parameters=log.model_parameters),
        system_prompt=system_prompt,
        prompts=prompts,
        inputs=inputs,
        steps=steps,
        outputs=tuple(Output(name=one.name, content_ref=ref()) for one in log.outputs),
        environment=Environment(os=log.os, runtime=log.runtime, tool_versions=log.tool_versions),
        parent="" if parent is None else str(parent),
    )


def _suspects(contents: Sequence[Content], put: PutContents) -> Iterator[tuple[str, str]]:
    for content, done in zip(contents, put.each, strict=True):
        for kind in done.suspects:
            yield content.at, kind


def _beside_contents(log: ExecutionLog) -> Iterator[tuple[str, Looked]]:
    """What looking at all the other texts of the manifest showed, place by place. Most of them stand there often."""
    known: dict[str, Looked] = {}
    for place, value in _other_texts(log):
        if not value:
            continue
        if isinstance(value, str):
            looked = known.get(value) or known.setdefault(value, looked_at(value))
        else:
            looked = looked_at(value)
        if looked.kinds or not looked.whole:
            yield "/" + "/".join(map(str, place)), looked


def _other_texts(log: ExecutionLog) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Each with the parts of its place: very few of the places are ever written."""
    yield ("model", "identifier"), log.model
    yield ("model", "parameters"), log.model_parameters
    yield ("environment",), [log.os, log.runtime, dict(log.tool_versions or {})]
    yield from ((("prompts", number, "role"), one.role) for number, one in enumerate(log.prompts))
    yield from ((("inputs", number, "name"), one.name) for number, one in enumerate(log.inputs))
    yield from ((("outputs", number, "name"), one.name) for number, one in enumerate(log.outputs))
    for number, step in enumerate(log.steps):
        yield ("steps", number, "type"), step.type
        yield ("steps", number, "tool"), step.tool
        yield ("steps", number, "parameters"), step.parameters
