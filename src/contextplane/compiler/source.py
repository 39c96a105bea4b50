"""Compiles a case from a pack, as its file has it and with overrides; gives a refusal its place."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from contextplane.authoring.source_file import Authored
from contextplane.compiler.case import CaseEnvironment, CaseInvalid, CompileCase, read_case
from contextplane.compiler.compile import compile_context
from contextplane.compiler.errors import BudgetInvalid, InputInvalid
from contextplane.compiler.overrides import Knob, KnobInvalid, fact_at, known_places, turned
from contextplane.compiler.report import Moved, moved
from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext, Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = ["Compiled", "PackSource", "compiled_case", "placed", "placed_in"]


_PARTS = frozenset({"request", "run_context", "environment", "evidence", "memories", "as_of"})


_OF_FORM = (CaseInvalid, InputInvalid, BudgetInvalid)
"""What refuses a value for what it is, whatever the pack says of it."""


class PackSource:
    """A pack that may be compiled from, and where it came from. It is prepared once for each environment."""

    def __init__(self, pack: ContextPack, lineage: tuple[Lineage, ...], where: Callable[[str], str]) -> None:
        self.pack = pack
        self.lineage = lineage
        self.where = where
        self._views: dict[CaseEnvironment, PackView] = {}

    def view(self, environment: CaseEnvironment) -> PackView:
        if environment not in self._views:
            self._views[environment] = PackView(
                self.pack, ontologies=environment.ontologies, snapshot=environment.snapshot, lineage=self.lineage
            )
        return self._views[environment]

    def compile(self, case: CompileCase) -> CompiledContext:
        return compile_context(
            self.view(case.environment),
            case.run_context,
            case.request,
            case.evidence,
            case.memories,
            as_of=case.as_of,
        )


class Compiled(Value, frozen=True):
    """What came of a case, and what comes of it without the knobs: a context, or the code of its refusal.

    Neither is there when no knob was turned.
    """

    value: Json
    context: CompiledContext
    before: CompiledContext | None = None
    refused_before: str = ""

    @property
    def moved(self) -> tuple[Moved, ...]:
        """What is otherwise than without the knobs."""
        return moved(self.before, self.context) if self.before is not None else ()

    @property
    def hash_moved(self) -> bool:
        return self.before is None or _hash(self.before) != _hash(self.context)


def compiled_case(source: PackSource, file: Authored, knobs: Sequence[Knob] = ()) -> Compiled:
    """Compile a case as its file has it, and with the knobs turned. A refusal is given its place."""
    try:
        value = turned(file.file.value, knobs, known_places(source.pack))
        context = source.compile(read_case(value))
    except ContextPlaneError as error:
        raise placed(error, source, file, knobs) from None
    if not knobs:
        return Compiled(value=value, context=context)
    try:
        return Compiled(value=value, context=context, before=source.compile(read_case(file.file.value)))
    except ContextPlaneError as error:
        return Compiled(value=value, context=context, refused_before=error.code)


def placed(
    error: ContextPlaneError, source: PackSource | None, file: Authored, knobs: Sequence[Knob] = ()
) -> ContextPlaneError:
    """The same error, with the place in the file, the knob, or the pack that it speaks of."""
    at = _pointer(error.at or "")
    if at is None:
        name, hash_, rest = (error.at or "").partition("#")
        if name == "pack" and hash_ and source is not None:
            error.at = source.where(rest)
        return error
    error.details["pointer"] = at
    turned_here = [
        knob for knob in knobs if at == knob.at or at.startswith(f"{knob.at}/") or knob.at.startswith(f"{at}/")
    ]
    if turned_here and at:
        error.at = f"--set {turned_here[0].name}"
        if isinstance(error, _OF_FORM) and any(
            at == override.at or at.startswith(f"{override.at}/") for override in turned_here
        ):
            return _not_a_value(error)
        return error
    error.at = file.where(at)
    if isinstance(error, CaseInvalid) and at:
        # A line and a column alone do not say what it is, least of all in a file of one line.
        error.message = f"{at}: {error.message}"
    return error


def _not_a_value(error: ContextPlaneError) -> KnobInvalid:
    """What was typed is no value of what it is for: that is wrong with the command, and not with the request."""
    message = f"its value is refused: {error.message}"
    return KnobInvalid(message, at=error.at, hint=error.hint or "write another one", details=error.details)


@contextmanager
def placed_in(file: Authored) -> Iterator[None]:
    """Give what is refused its place in the file of the case."""
    try:
        yield
    except ContextPlaneError as error:
        raise placed(error, None, file) from None


def _hash(compiled: CompiledContext) -> str:
    return compiled.context_ledger.compiled_context_hash


def _pointer(at: str) -> str | None:
    """The place in the case that an error names; None when it names none."""
    if at.startswith("/") or not at:
        return at
    name, hash_, rest = at.partition("#")
    if name == "facts" and hash_:
        return fact_at(rest.strip("/").replace("/", "."))
    return f"/{name}{rest}" if hash_ and name in _PARTS else None
