"""Show a run, a published version or a handoff pack.

REF is one of:
  - an execution pack, ctx://<hash> or the first digits of the hash: what the agent saw, did and produced
  - a handoff pack, pk_<id> or pk_<id>@3: as 'ctx handoff show'
  - a version in the registry, id@X.Y.Z, or id@NAME for an alias or an environment: layers, state, signatures, reviews,
    catalogs, gates, pins and history

--steps adds the time and parameters of each step. --content adds the contents, up to 4,000 characters each; 'ctx cat
REF:PART' prints all of one. Contents that were changed, are missing or cannot be read are marked. Without --content
only those of up to 8 MiB are checked, 64 MiB in all; 'ctx verify' checks everything.

A step is numbered by its place in the list; the index in its log is shown if it differs. A time after a + is counted
from the previous step. --json prints the manifest with its hash, and excludes --content. On a terminal, long output
goes through PAGER.

Examples:
  ctx show 3fa9              summarize a run
  ctx show 3fa9 --content    with prompts and outputs
  ctx show support@1.0.0     show a published version
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean, quantity

if TYPE_CHECKING:
    from contextplane.app.execution.load import LoadedPack, ParentRun
    from contextplane.app.platform import Platform
    from contextplane.cli.render.execution import ContentLines
    from contextplane.model.execution.manifest import Input, Manifest, Output, Step
    from contextplane.model.timestamp import Timestamp

__all__ = ["add_arguments", "run"]

_CHAIN = 20
_WIDE = 80
_DIGITS = 12
_INDENT = " " * 6
_NANO = 1_000_000_000
_MINUTE = 60


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="ctx://<hash>, or the first digits of it; pk_<id>; or id@X.Y.Z")
    parser.add_argument("--steps", action="store_true", help="add the time and parameters of each step")
    parser.add_argument("--content", action="store_true", help="add prompts, inputs, step outputs and outputs")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.references import HandoffTarget, VersionTarget, resolve

    target = resolve(args.ref)
    if isinstance(target, VersionTarget):
        return _show_version(args, output)
    return (
        _show_handoff(str(target.ref), args, output) if isinstance(target, HandoffTarget) else _show_run(args, output)
    )


def _show_version(args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.parser import Usage
    from contextplane.cli.registry.show import show

    for option in ("steps", "content"):
        if getattr(args, option):
            raise Usage(f"argument --{option}: only for a run", hint="'ctx cat' writes the bytes of a digest")
    return show(args, output)


def _show_handoff(ref: str, args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.handoff.show import show
    from contextplane.cli.parser import Usage

    for option in ("steps", "content"):
        if getattr(args, option):
            raise Usage(f"argument --{option}: only for a run", hint="'ctx handoff read' shows a handoff pack")
    return show(ref, output)


def _show_run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.execution.load import ContentReader, load_run
    from contextplane.cli.parser import Usage
    from contextplane.cli.render.execution import ContentLines, bare_lines
    from contextplane.cli.store import open_store
    from contextplane.cli.terminal import page
    from contextplane.model.execution.manifest import fill_in_hash

    if output.json and args.content:
        hint = "--json gives the manifest, which names every content; 'ctx cat REF:PART' writes one"
        raise Usage("argument --content: not allowed with argument --json", hint=hint)
    with open_store(output) as platform:
        pack = load_run(platform, args.ref)
        if output.json:
            output.json_text(fill_in_hash(pack.raw, pack.digest).decode())
            return OK
        contents = ContentLines(ContentReader(platform))
        if output.quiet:
            for line in bare_lines(pack, contents, shown=args.content):
                output.entry(line, line)
            return OK
        body = _Body(args, contents)
        text = "\n".join([*_head(pack, platform), *body.lines(pack.manifest), *_foot(pack)])
    page(text, output)
    return OK


def _head(pack: "LoadedPack", platform: "Platform") -> Iterator[str]:
    from contextplane.cli.output import format_created

    manifest = pack.manifest
    yield f"Pack:      {pack.digest.hex[:_DIGITS]}"
    yield f"Hash:      {pack.digest.hex}"
    yield f"Created:   {format_created(manifest.created)}"
    yield f"Model:     {clean(manifest.model.identifier)}"
    yield from _parents(pack, platform)
    times = [time for time in map(_moment, manifest.steps) if time]
    if len(times) > 1 and times[0] <= times[-1]:
        yield f"Duration:  {_span(times[0], times[-1])} from the first step to the last"
    yield "Signature: none"  # an execution pack cannot be signed yet


def _parents(pack: "LoadedPack", platform: "Platform") -> Iterator[str]:
    """Yield the line of parents, each forked from the next, on as many lines as it needs."""
    line = ""
    for parent in _parent_names(pack, platform):
        if not line:
            line = f"Parent:    {parent}"
        elif len(more := f"{line}, forked from {parent}") < _WIDE:
            line = more
        else:
            yield f"{line},"
            line = f"           forked from {parent}"
    if line:
        yield line


def _parent_names(pack: "LoadedPack", platform: "Platform") -> Iterator[str]:
    from contextplane.app.execution.load import parent_runs

    for n, parent in enumerate(parent_runs(platform, pack)):
        if n == _CHAIN:
            yield f"... ('ctx log {pack.digest.hex[:_DIGITS]}' lists them all)"
            return
        yield _parent_name(parent)


def _parent_name(parent: "ParentRun") -> str:
    name = clean(parent.ref) if parent.digest is None else parent.digest.hex[:_DIGITS]
    return f"{name} ({parent.problem})" if parent.problem else name


class _Body:
    """The lists of a pack, and with --content the contents."""

    def __init__(self, args: Namespace, contents: "ContentLines") -> None:
        self._args = args
        self._contents = contents

    def lines(self, manifest: "Manifest") -> Iterator[str]:
        yield ""
        size = self._contents.size(manifest.system_prompt)
        yield from self._with_content(
            f"System prompt: {_hash(manifest.system_prompt)} ({size})", manifest.system_prompt
        )
        for n, prompt in enumerate(manifest.prompts):
            size = self._contents.size(prompt.content_ref)
            yield from self._with_content(f"Prompt {n} ({clean(prompt.role)}): {size}", prompt.content_ref)
        yield from self._files("Inputs", manifest.inputs)
        yield from self._steps(manifest.steps)
        yield from self._files("Outputs", manifest.outputs)
        if self._contents.unchecked and not self._args.content:
            yield from (
                "",
                f"Not checked: {quantity(self._contents.unchecked, 'content')}; 'ctx verify' checks everything",
            )

    def _with_content(self, heading: str, ref: str) -> Iterator[str]:
        yield heading
        if self._args.content and ref:
            yield from self._contents.lines(ref, _INDENT)

    def _files(self, what: str, files: "Sequence[Input | Output]") -> Iterator[str]:
        if files:
            yield from ("", f"{what} ({len(files)}):")
        for file in files:
            yield from self._with_content(
                f"  {clean(file.name)} ({self._contents.size(file.content_ref)})", file.content_ref
            )

    def _steps(self, steps: "Sequence[Step]") -> Iterator[str]:
        if steps:
            yield from ("", f"Steps ({len(steps)}):")
        before = None
        for n, step in enumerate(steps):
            moment = _moment(step)
            yield from self._with_content(self._step(n, step, _since(before, moment)), step.output_ref)
            before = moment

    def _step(self, n: int, step: "Step", took: str) -> str:
        name = f"{clean(step.type)} {clean(step.tool)}".rstrip()
        index = f", index {step.index}" if step.index != n else ""
        line = f"  [{n}] {name} ({'' if step.deterministic else 'non-'}deterministic{index}){took}"
        line += f" -> {self._contents.size(step.output_ref)}" if step.output_ref else ""
        if not self._args.steps:
            return line
        line += f"\n{_INDENT}at {clean(step.timestamp)}" if _moment(step) else ""
        return line + (f"\n{_INDENT}{clean(_json(step.parameters))}" if step.parameters else "")


def _foot(pack: "LoadedPack") -> Iterator[str]:
    environment, parameters = pack.manifest.environment, pack.manifest.model.parameters
    if parameters:
        yield from ("", "Model parameters:")
        yield from (f"  {clean(name)}: {clean(_json(value))}" for name, value in sorted(parameters.items()))
    yield from ("", f"Environment: {clean(environment.os)} / {clean(environment.runtime)}")
    if environment.tool_versions:
        yield "Tool versions:"
        yield from (f"  {clean(tool)}: {clean(version)}" for tool, version in sorted(environment.tool_versions.items()))


def _hash(ref: str) -> str:
    """Return the first digits of the hash of a content; a text that is no reference stays as it is."""
    return clean(ref.removeprefix("sha256:")[:_DIGITS])


def _json(value: object) -> str:
    from contextplane.model.json.canonical import SORTED

    return SORTED.encode(value).decode()


def _moment(step: "Step") -> "Timestamp | None":
    """Return the time of a step, if it has one."""
    from contextplane.errors import ContextPlaneError
    from contextplane.model.timestamp import NO_TIME, Timestamp

    try:
        moment = Timestamp.parse(step.timestamp)
    except ContextPlaneError:
        return None
    return None if moment == NO_TIME else moment


def _since(before: "Timestamp | None", moment: "Timestamp | None") -> str:
    return f" +{_span(before, moment)}" if before and moment and before <= moment else ""


def _span(start: "Timestamp", end: "Timestamp") -> str:
    """Format a duration: `1.500s`, `2m 03s`, `1h 02m 03s`."""
    nanos = (end.seconds - start.seconds) * _NANO + end.nanos - start.nanos
    if nanos < _MINUTE * _NANO:
        return f"{nanos // 1_000_000 / 1000:.3f}s"
    minutes, seconds = divmod(nanos // _NANO, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}h {minutes:02d}m {seconds:02d}s" if hours else f"{minutes}m {seconds:02d}s"
