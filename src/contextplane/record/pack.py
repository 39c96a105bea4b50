"""From a log to an execution pack: every content an object, and the manifest that names them."""

from contextplane.model.execution_log import ExecutionLog
from contextplane.model.ids import Digest
from contextplane.model.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step, manifest_bytes
from contextplane.model.value import Value
from contextplane.ports.objects import Batch, Stored
from contextplane.ports.sources import Sources
from contextplane.record.contents import put_contents

__all__ = ["Staged", "stage_log"]


class Staged(Value, frozen=True):
    """A pack whose objects are in a batch. `suspects`: where something looks like a secret, and like which."""

    digest: Digest
    manifest: Manifest
    contents: tuple[Stored, ...]
    suspects: tuple[tuple[str, str], ...]


def stage_log(log: ExecutionLog, parent: Digest | None, batch: Batch, sources: Sources) -> Staged:
    """Put everything that a log contains, and its manifest last; nothing is visible before the batch is committed."""
    contents = [
        log.system_prompt,
        *(one.content for one in log.prompts),
        *(one.content for one in log.inputs),
        *(one.output for one in log.steps if one.output is not None),
        *(one.content for one in log.outputs),
    ]
    put = put_contents(contents, batch, sources)
    following = iter(put)

    def ref() -> str:
        return str(next(following).stored.digest)

    # The fields are filled in the order in which the contents were put.
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
            timestamp=str(one.timestamp),
        )
        for one in log.steps
    )
    manifest = Manifest(
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
    suspects = tuple((one.at, kind) for one, done in zip(contents, put, strict=True) for kind in done.suspects)
    return Staged(
        digest=batch.put(manifest_bytes(manifest)),
        manifest=manifest,
        contents=tuple(one.stored for one in put),
        suspects=suspects,
    )
