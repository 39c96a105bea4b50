"""The public Python API: the functions that `import contextplane` offers.

docs/python.md describes them. Every function does what the verb of the same name does, and raises `ContextPlaneError`
where the verb would exit with an error. Results are the values that the verb prints with `--json`.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from contextplane.app.references import FileTarget, RunTarget, Target, find_run
from contextplane.app.references import resolve as resolve_target
from contextplane.app.settings import from_environment
from contextplane.app.store_access import Store
from contextplane.audit.diff import PackDiff
from contextplane.audit.replay import Fidelity, ReplayedPart, RunDrift
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.ids import ExecutionRef
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.app.execution.replay import ReplayLimits
    from contextplane.app.execution.verify import ArtifactVerdict
    from contextplane.app.packs.lint import LintResult
    from contextplane.audit.verify import PackVerdict

__all__ = [
    "PathLike",
    "ReplayResult",
    "compile_context",
    "diff",
    "lint",
    "open_store",
    "replay",
    "resolve",
    "verify",
]

PathLike = str | os.PathLike[str]


class ReplayResult(Value, frozen=True):
    """The outcome of a replay: every part, the drift of inputs and environment, and the verdict."""

    fidelity: Fidelity
    parts: tuple[ReplayedPart, ...]
    drift: tuple[RunDrift, ...]


def open_store(folder: PathLike | None = None, *, create: bool = False) -> Store:
    """Return the store that `folder` is in, or that the environment names. Use it in a `with` statement.

    `create`: make a store in the folder if it is in none.
    """
    settings = from_environment()
    if folder is not None:
        settings = replace(settings, cwd=os.path.abspath(folder), ctx_dir=None)
    if create:
        from contextplane.app.init import init

        init(settings)
    return Store(settings)


def lint(path: PathLike, *, overlays: tuple[PathLike, ...] = (), environment: PathLike | None = None) -> "LintResult":
    """Run every validation gate over the document in a file."""
    from contextplane.app.packs.lint import lint_file

    description = os.fspath(environment) if environment is not None else None
    return lint_file(
        os.fspath(path), overlays=tuple(os.fspath(overlay) for overlay in overlays), environment=description
    )


def compile_context(
    pack: PathLike, request: PathLike | Mapping[str, Any], *, overlays: tuple[PathLike, ...] = ()
) -> CompiledContext:
    """Compile a request against the pack in a file, which must pass every gate.

    `request` is a compile case: a file as `ctx new FILE --request` writes it, or its members. The same pack, overlays
    and request give the same bytes and the same hash.
    """
    from contextplane.app.compile.sources import source_from_file
    from contextplane.app.packs.files import read_case_file
    from contextplane.compiler.case import read_case

    source = source_from_file(os.fspath(pack), tuple(os.fspath(overlay) for overlay in overlays))
    value = dict(request) if isinstance(request, Mapping) else read_case_file(os.fspath(request)).file.value
    return source.compile(read_case(value))


def resolve(store: Store, text: str) -> Target:
    """Return what a reference names.

    An execution pack is looked up: the first digits of its hash become the whole.
    """
    target = resolve_target(text, files=True)
    if isinstance(target, RunTarget) and not target.selector:
        return RunTarget(ref=ExecutionRef(find_run(text, store.platform)))
    return target


def verify(store: Store, text: str) -> "PackVerdict | ArtifactVerdict":
    """Check an execution pack, or a file against the run that its sidecar names. `answer` is the verdict."""
    from contextplane.app.execution.verify import verify_artifact
    from contextplane.audit.verify import verify_pack

    platform = store.platform
    target = resolve_target(text, files=True)
    if isinstance(target, FileTarget):
        return verify_artifact(platform, target.path)
    return verify_pack(find_run(text, platform), platform.entries, platform.objects, seen=lambda *_: None)


def diff(store: Store, a: str, b: str) -> PackDiff:
    """Compare two execution packs. `entries` is empty if they do not differ."""
    from contextplane.audit.diff import diff_packs
    from contextplane.audit.load import load_pack

    objects = store.platform.objects
    first, second = (load_pack(find_run(text, store.platform), objects) for text in (a, b))
    return diff_packs(first, second, objects)


def replay(store: Store, text: str, *, recorded: bool = False, limits: "ReplayLimits | None" = None) -> ReplayResult:
    """Run the tool calls of an execution pack again, confined, and compare their outputs.

    `recorded`: read the recorded outputs back instead of calling a tool. `limits`: what the tools may reach.
    """
    from contextplane.app.execution.replay import ReplayLimits, open_recorded_replay, open_replay
    from contextplane.audit.load import load_pack
    from contextplane.audit.replay import fidelity

    platform = store.platform
    pack = load_pack(find_run(text, platform), platform.objects)
    opened = open_recorded_replay(platform, pack) if recorded else open_replay(platform, pack, limits or ReplayLimits())
    with opened as running:
        parts = tuple(running.parts)
        return ReplayResult(fidelity=fidelity(parts), parts=parts, drift=running.drift)
