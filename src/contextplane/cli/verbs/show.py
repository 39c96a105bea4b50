"""Show an execution pack: what the agent saw, what it did, what came of it.

Without an option a summary; --steps adds each step's parameters; --content the contents themselves, each
up to 4,000 characters ('ctx cat REF:PART' gives all of one). A content that is missing or was tampered
with is marked (without --content: one of up to 8 MiB). --json gives the manifest with its hash filled in.
"""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, clean, human_size

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.audit.load import LoadedPack

__all__ = ["add_arguments", "run"]

_LONGEST = 4000
_CHECKED = 8 << 20
_CHAIN = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="the execution pack")
    parser.add_argument("--steps", action="store_true", help="with the parameters of each step")
    parser.add_argument("--content", action="store_true", help="with prompts, step outputs and outputs")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.audit.load import load
    from contextplane.cli.naming import named_pack
    from contextplane.cli.opening import opening
    from contextplane.model.manifest import filled_in

    with opening(screen) as platform:
        pack = load(named_pack(args.ref, platform), platform.objects)
        if screen.json:
            sys.stdout.write(filled_in(pack.raw, pack.digest).decode() + "\n")
            return OK
        text = "\n".join([*_head(pack, platform), *_lists(args, pack, platform), *_foot(pack)])
    _page(text, screen)
    return OK


def _page(text: str, screen: Screen) -> None:
    """Through the pager on a terminal, when there is more than fits."""
    if sys.stdout.isatty() and not screen.quiet and text.count("\n") > _screen_lines():
        import pydoc

        pydoc.pager(text)
    else:
        screen.say(text)


def _screen_lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines - 1


def _head(pack: "LoadedPack", platform: "Platform") -> list[str]:
    manifest = pack.manifest
    lines = [
        f"Pack:    {pack.digest.hex[:12]}   ctx://{pack.digest.hex}",
        f"Created: {clean(manifest.created)}",
        f"Model:   {clean(manifest.model.identifier)}",
        *(f"Parent:  {one}" for one in _parents(pack, platform)),
        "Signed:  no",
        "",
        f"System prompt: {_size(manifest.system_prompt, platform)}",
    ]
    lines += [
        f"Prompt {n} ({clean(one.role)}): {_size(one.content_ref, platform)}" for n, one in enumerate(manifest.prompts)
    ]
    return lines


def _parents(pack: "LoadedPack", platform: "Platform") -> list[str]:
    """The line of parents, each a fork of the next, up to the first that is not here."""
    from contextplane.audit.load import load
    from contextplane.errors import ContextPlaneError
    from contextplane.model.ids import Digest

    line: list[str] = []
    parent = pack.manifest.parent
    while parent and len(line) < _CHAIN:
        try:
            loaded = load(Digest.parse(parent), platform.objects)
        except ContextPlaneError as error:
            return [*line, f"{clean(parent)} ({error.code})"]
        line.append(loaded.digest.hex[:12])
        parent = loaded.manifest.parent
    return line


def _lists(args: Namespace, pack: "LoadedPack", platform: "Platform") -> list[str]:
    manifest = pack.manifest
    lines: list[str] = []
    if manifest.inputs:
        lines += ["", f"Inputs ({len(manifest.inputs)}):"]
        lines += [f"  {clean(one.name)} ({_size(one.content_ref, platform)})" for one in manifest.inputs]
    if manifest.steps:
        lines += ["", f"Steps ({len(manifest.steps)}):"]
        for n in range(len(manifest.steps)):
            lines += _step(args, pack, n, platform)
    if manifest.outputs:
        lines += ["", f"Outputs ({len(manifest.outputs)}):"]
    for one in manifest.outputs:
        lines.append(f"  {clean(one.name)} ({_size(one.content_ref, platform)})")
        lines += _content(one.content_ref, platform, "      ") if args.content else []
    return lines + (_prompts(pack, platform) if args.content else [])


def _step(args: Namespace, pack: "LoadedPack", n: int, platform: "Platform") -> list[str]:
    step = pack.manifest.steps[n]
    kind = "deterministic" if step.deterministic else "non-deterministic"
    name = f"{clean(step.type)} {clean(step.tool)}".rstrip()
    lines = [f"  [{n}] {name} ({kind}){_took(pack, n)}"]
    if args.steps and step.parameters:
        lines.append(f"      {clean(_canonical(step.parameters))}")
    return lines + (_content(step.output_ref, platform, "      ") if args.content and step.output_ref else [])


def _prompts(pack: "LoadedPack", platform: "Platform") -> list[str]:
    lines = ["", "System prompt:", *_content(pack.manifest.system_prompt, platform, "  ")]
    for n, prompt in enumerate(pack.manifest.prompts):
        lines += [f"Prompt {n} ({clean(prompt.role)}):", *_content(prompt.content_ref, platform, "  ")]
    return lines


def _foot(pack: "LoadedPack") -> list[str]:
    environment = pack.manifest.environment
    lines = ["", f"Environment: {clean(environment.os)} / {clean(environment.runtime)}"]
    versions = sorted((environment.tool_versions or {}).items())
    return lines + (
        ["Tool versions:", *(f"  {clean(tool)}: {clean(one)}" for tool, one in versions)] if versions else []
    )


def _canonical(value: object) -> str:
    from contextplane.model.canonical import canonical

    return canonical(value).decode()


def _took(pack: "LoadedPack", n: int) -> str:
    """How long after the step before it this one ended, when both tell the time."""
    from contextplane.errors import ContextPlaneError
    from contextplane.model.timestamp import NO_TIME, Timestamp

    if n == 0:
        return ""
    try:
        earlier, later = (Timestamp.parse(pack.manifest.steps[one].timestamp) for one in (n - 1, n))
    except ContextPlaneError:
        return ""
    if NO_TIME in {earlier, later} or later < earlier:
        return ""
    seconds = later.seconds - earlier.seconds + (later.nanos - earlier.nanos) / 1e9
    return f" +{seconds:.3f}s"


def _size(ref: str, platform: "Platform") -> str:
    from contextplane.errors import ContextPlaneError
    from contextplane.model.ids import Digest

    try:
        digest = Digest.parse(ref)
        size = platform.objects.size(digest)
        condition = platform.objects.check(digest) if size <= _CHECKED else None
    except ContextPlaneError as error:
        return f"{error.code}: {clean(ref[:80])}"
    return human_size(size) if condition is None or condition.state == "whole" else f"{condition.state}: {clean(ref)}"


def _content(ref: str, platform: "Platform", indent: str) -> list[str]:
    from contextplane.errors import ContextPlaneError
    from contextplane.model.ids import Digest

    try:
        data = platform.objects.get(Digest.parse(ref))
    except ContextPlaneError as error:
        return [f"{indent}[{error.code}: {clean(error.message)}]"]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [f"{indent}[{human_size(len(data))} that are not text]"]
    shown = [f"{indent}{clean(line)}" for line in text[:_LONGEST].splitlines()]
    return shown + ([f"{indent}[... {len(text) - _LONGEST:,} more characters]"] if len(text) > _LONGEST else [])
