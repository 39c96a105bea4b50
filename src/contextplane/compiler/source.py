"""Compiles a case file from a pack, with and without overrides, and gives errors their place."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from contextplane.authoring.source_file import NamedFile
from contextplane.compiler.case import CaseEnvironment, CaseInvalid, CompileCase, read_case
from contextplane.compiler.compile import compile_draft
from contextplane.compiler.draft import Draft
from contextplane.compiler.errors import BudgetInvalid, InputInvalid
from contextplane.compiler.overrides import Override, OverrideInvalid, apply_overrides, fact_pointer, known_places
from contextplane.compiler.report import ContextItem, ItemChange, compare_contexts, list_items
from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext, Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.tokens import Tokens
from contextplane.model.value import Value

__all__ = ["CompiledCase", "PackSource", "add_place", "compile_case", "list_all_items", "place_errors"]

_CASE_MEMBERS = frozenset({"request", "run_context", "environment", "evidence", "memories", "as_of"})
_FORM_ERRORS = (CaseInvalid, InputInvalid, BudgetInvalid)
"""Errors that refuse a value for its form, whatever the pack is."""


class PackSource:
    """A pack to compile from, and where it came from. It is prepared once for each environment.

    `tokens`: the counter, if it is not the pack's own.
    """

    def __init__(
        self,
        pack: ContextPack,
        lineage: tuple[Lineage, ...],
        where: Callable[[str], str],
        tokens: Tokens | None = None,
    ) -> None:
        self.pack = pack
        self.tokens = tokens
        self.lineage = lineage
        self.where = where
        self._views: dict[CaseEnvironment, PackView] = {}

    def view(self, environment: CaseEnvironment) -> PackView:
        if environment not in self._views:
            self._views[environment] = PackView(
                self.pack, ontologies=environment.ontologies, snapshot=environment.snapshot, lineage=self.lineage
            )
        return self._views[environment]

    def compile_draft(self, case: CompileCase) -> Draft:
        """Compile a case, and return the parts of all stages with the decision of policy."""
        return compile_draft(
            self.view(case.environment),
            case.run_context,
            case.request,
            case.evidence,
            case.memories,
            tokens=self.tokens,
            as_of=case.as_of,
        )

    def compile(self, case: CompileCase) -> CompiledContext:
        return self.compile_draft(case).seal


class CompiledCase(Value, frozen=True):
    """The result of compiling a case, and the result without its overrides, for comparison.

    `before`: the context without the overrides; `refused_before`: the error code if there is none. Both are empty if
    there were no overrides.
    """

    value: Json
    context: CompiledContext
    before: CompiledContext | None = None
    refused_before: str = ""

    @property
    def changes(self) -> tuple[ItemChange, ...]:
        """The items that the overrides changed."""
        return compare_contexts(self.before, self.context) if self.before is not None else ()

    @property
    def hash_changed(self) -> bool:
        return self.before is None or _hash(self.before) != _hash(self.context)


def compile_case(source: PackSource, file: NamedFile, overrides: Sequence[Override] = ()) -> CompiledCase:
    """Compile a case with the overrides, and without them for comparison. Errors are given their place."""
    try:
        value = apply_overrides(file.file.value, overrides, known_places(source.pack))
        context = source.compile(read_case(value))
    except ContextPlaneError as error:
        raise add_place(error, source, file, overrides) from None
    if not overrides:
        return CompiledCase(value=value, context=context)
    try:
        return CompiledCase(value=value, context=context, before=source.compile(read_case(file.file.value)))
    except ContextPlaneError as error:
        return CompiledCase(value=value, context=context, refused_before=error.code)


def add_place(
    error: ContextPlaneError, source: PackSource | None, file: NamedFile, overrides: Sequence[Override] = ()
) -> ContextPlaneError:
    """Add the place that an error is about: in the file, in an override, or in the pack."""
    at = _pointer(error.at or "")
    if at is None:
        name, hash_, place = (error.at or "").partition("#")
        if name == "pack" and hash_ and source is not None:
            error.at = source.where(place)
        return error
    error.details["pointer"] = at
    overridden = [
        override
        for override in overrides
        if at == override.at or at.startswith(f"{override.at}/") or override.at.startswith(f"{at}/")
    ]
    if overridden and at:
        error.at = f"--set {overridden[0].name}"
        if isinstance(error, _FORM_ERRORS) and any(
            at == override.at or at.startswith(f"{override.at}/") for override in overridden
        ):
            return _override_error(error)
        return error
    error.at = file.where(at)
    shown = error.details["pointer"] = file.file.pointer(at)
    if isinstance(error, CaseInvalid) and shown != at:
        _use_pointers(error, file)
    if isinstance(error, CaseInvalid) and shown:
        # A line and a column alone do not say which value it is, least of all in a file of one line.
        error.message = f"{shown}: {error.message}"
    return error


def _use_pointers(error: CaseInvalid, file: NamedFile) -> None:
    """Name the places of all problems as the file has them, where it is not the whole case."""
    problems = error.details["problems"]
    for problem in problems if isinstance(problems, list) else ():
        at = problem["at"]
        problem["at"] = file.file.pointer(at)
        error.message = error.message.replace(f"; {at}: ", f"; {problem['at']}: ")


def _override_error(error: ContextPlaneError) -> OverrideInvalid:
    """The error for a value of an override that has the wrong form: the command is wrong, not the request."""
    message = f"its value is refused: {error.message}"
    return OverrideInvalid(message, at=error.at, hint=error.hint or "write another one", details=error.details)


@contextmanager
def place_errors(file: NamedFile) -> Iterator[None]:
    """Give errors raised in the block their place in the case file."""
    try:
        yield
    except ContextPlaneError as error:
        raise add_place(error, None, file) from None


def _hash(compiled: CompiledContext) -> str:
    return compiled.context_ledger.compiled_context_hash


def _pointer(at: str) -> str | None:
    """The JSON Pointer in the case that an error names; None if it names none."""
    if at.startswith("/") or not at:
        return at
    name, hash_, place = at.partition("#")
    if name == "facts" and hash_:
        return fact_pointer(place.strip("/").replace("/", "."))
    return f"/{name}{place}" if hash_ and name in _CASE_MEMBERS else None


def list_all_items(source: PackSource, compiled: CompiledContext) -> tuple[ContextItem, ...]:
    """List the items of a compiled context, and the inactive gates of the pack, each with the note on it."""
    items = list_items(compiled)
    active = {item.id for item in items if item.kind == "gate"}
    inactive = [gate.gate_id for gate in source.pack.policy_layer.approval_gates if gate.gate_id not in active]
    notes = [note for stage in compiled.context_ledger.stages for note in stage.notes]
    return (*items, *(_inactive_gate(gate_id, notes) for gate_id in inactive))


def _inactive_gate(gate_id: str, notes: Sequence[str]) -> ContextItem:
    note = next((note for note in notes if note.startswith(f"{gate_id} is not active")), "")
    words = note.removeprefix(f"{gate_id} is ") or "not active"
    return ContextItem(kind="gate", id=gate_id, inside=False, words=words, stage="tools")
