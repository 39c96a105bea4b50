"""Handoff packs as evidence in a run: a finalized revision becomes an input with the same digest.

The execution pack then refers to the very object of the revision: the object is not collected, and is exported with the
pack. It says which handoff pack and which revision it is.
"""

from typing import ClassVar

from msgspec.structs import replace

from contextplane.app.handoff.session import HandoffSession, open_handoffs
from contextplane.app.settings import Settings, from_environment
from contextplane.errors import ContextPlaneError, Family
from contextplane.handoff.reader import as_id
from contextplane.model.execution.log import Content, ExecutionLog, InvalidLog, LogFile
from contextplane.model.problems import Problem
from contextplane.model.reference import HandoffRef, parse_reference

__all__ = ["EvidenceNotFrozen", "handoff_input", "resolve_evidence"]

_SHOWN = 80


class EvidenceNotFrozen(ContextPlaneError):
    """Only a finalized revision of a handoff pack, named by its number, is evidence.

    Nothing else stays as it is.
    """

    code: ClassVar[str] = "evidence_not_frozen"
    family: ClassVar[Family] = "refused"


def handoff_input(reference: str, settings: Settings | None = None) -> tuple[str, bytes]:
    """Return the name and the content of the input for a revision.

    Use it as `run.input(*handoff_input("pk_abcd2345@3"))`.
    """
    with open_handoffs(settings or from_environment()) as session:
        return f"handoff/{reference}", _finalized_bytes(reference, session)


def resolve_evidence(log: ExecutionLog) -> ExecutionLog:
    """Return the log with the bytes of the revisions that it names. All problems are reported together."""
    inputs: list[LogFile] = []
    problems: list[Problem] = []
    with open_handoffs(from_environment()) as session:
        for log_file in log.inputs:
            try:
                inputs.append(_resolve_input(log_file, session))
            except ContextPlaneError as error:
                problems.append(Problem(at=log_file.content.at, message=error.message))
    if problems:
        raise InvalidLog(tuple(problems))
    return replace(log, inputs=tuple(inputs))


def _resolve_input(log_file: LogFile, session: HandoffSession) -> LogFile:
    if log_file.content.how != "handoff":
        return log_file
    text = _finalized_bytes(str(log_file.content.value)[: _SHOWN + 1], session).decode()
    return LogFile(name=log_file.name, content=Content(how="text", value=text, at=log_file.content.at))


def _finalized_bytes(reference: str, session: HandoffSession) -> bytes:
    """Return the bytes of a finalized revision: canonical JSON, and therefore text."""
    ref = _handoff_ref(reference)
    if ref is None or ref.revision is None:
        raise EvidenceNotFrozen(f"not a revision of a handoff pack: {reference[:_SHOWN]!r}", hint="write pk_<id>@3")
    pack = session.pack_reader.get_revision(ref.id, ref.revision)
    if pack.pack.status != "finalized":
        raise EvidenceNotFrozen(f"{ref} is a draft; only a finalized revision is evidence", hint="finalize it first")
    return session.pack_reader.bytes_of(pack)


def _handoff_ref(text: str) -> HandoffRef | None:
    if as_id(text.partition("@")[0]) is None:
        return None
    named = parse_reference(text).target
    return named if isinstance(named, HandoffRef) else None
