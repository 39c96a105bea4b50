"""The names of the public API. `contextplane` loads this module when one of them is first used."""

from contextplane.app.api import ReplayResult, compile_context, diff, lint, open_store, replay, resolve, verify
from contextplane.app.execution.record import Recorder
from contextplane.app.execution.replay import ReplayLimits
from contextplane.app.execution.verify import ArtifactVerdict
from contextplane.app.packs.lint import LintResult
from contextplane.app.references import (
    FileTarget,
    HandoffTarget,
    OtherTarget,
    RecordingTarget,
    RunTarget,
    VersionTarget,
)
from contextplane.app.store_access import Store
from contextplane.audit.diff import PackDiff
from contextplane.audit.verify import PackVerdict
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack import ContextPack
from contextplane.model.execution.manifest import Manifest
from contextplane.model.ids import Digest, ExecutionRef, PackRef

__all__ = [
    "ArtifactVerdict",
    "CompiledContext",
    "ContextPack",
    "ContextPlaneError",
    "Digest",
    "ExecutionRef",
    "FileTarget",
    "HandoffTarget",
    "LintResult",
    "Manifest",
    "OtherTarget",
    "PackDiff",
    "PackRef",
    "PackVerdict",
    "Recorder",
    "RecordingTarget",
    "ReplayLimits",
    "ReplayResult",
    "RunTarget",
    "Store",
    "VersionTarget",
    "compile_context",
    "diff",
    "lint",
    "open_store",
    "replay",
    "resolve",
    "verify",
]
