"""Handoff packs as evidence in a run: a finalized revision is an input, and the input's digest is the revision's.

The execution pack then refers to the very object that was frozen, keeps it from being collected, and takes it along
when it is exported. Whoever has the execution pack can read in that object which pack and which revision it is.
"""

from typing import ClassVar

from msgspec.structs import replace

from contextplane.app.handoff.store import Desk, opened_desk
from contextplane.app.settings import Settings, from_environment
from contextplane.errors import ContextPlaneError, Family
from contextplane.handoff.reader import as_id
from contextplane.model.execution.log import Content, ExecutionLog, InvalidLog, LogFile
from contextplane.model.problems import Problem
from contextplane.model.reference import HandoffRef, parse_reference

__all__ = ["EvidenceNotFrozen", "handoff_input", "looked_up"]

_SHOWN = 80


class EvidenceNotFrozen(ContextPlaneError):
    """Only a finalized revision of a handoff pack, named by its number, is evidence: nothing else stays as it is."""

    code: ClassVar[str] = "evidence_not_frozen"
    family: ClassVar[Family] = "refused"


def handoff_input(reference: str, settings: Settings | None = None) -> tuple[str, bytes]:
    """The name and the content of the input that a revision is: `run.input(*handoff_input("pk_abcd2345@3"))`."""
    with opened_desk(settings or from_environment()) as desk:
        return f"handoff/{reference}", _frozen(reference, desk)


def looked_up(log: ExecutionLog) -> ExecutionLog:
    """A log with the bytes of the revisions that it names. What is wrong with any of them is told together."""
    inputs: list[LogFile] = []
    problems: list[Problem] = []
    with opened_desk(from_environment()) as desk:
        for log_file in log.inputs:
            try:
                inputs.append(_filled(log_file, desk))
            except ContextPlaneError as error:
                problems.append(Problem(at=log_file.content.at, message=error.message))
    if problems:
        raise InvalidLog(tuple(problems))
    return replace(log, inputs=tuple(inputs))


def _filled(log_file: LogFile, desk: Desk) -> LogFile:
    if log_file.content.how != "handoff":
        return log_file
    text = _frozen(str(log_file.content.value)[: _SHOWN + 1], desk).decode()
    return LogFile(name=log_file.name, content=Content(how="text", value=text, at=log_file.content.at))


def _frozen(reference: str, desk: Desk) -> bytes:
    """The bytes of a finalized revision, which are canonical JSON and therefore text."""
    ref = _reference(reference)
    if ref is None or ref.revision is None:
        raise EvidenceNotFrozen(f"not a revision of a handoff pack: {reference[:_SHOWN]!r}", hint="write pk_<id>@3")
    pack = desk.reading.at(ref.id, ref.revision)
    if pack.pack.status != "finalized":
        raise EvidenceNotFrozen(f"{ref} is a draft, and only what is finalized is evidence", hint="finalize it first")
    return desk.reading.bytes_of(pack)


def _reference(text: str) -> HandoffRef | None:
    if as_id(text.partition("@")[0]) is None:
        return None
    named = parse_reference(text).named
    return named if isinstance(named, HandoffRef) else None
