"""Golden cases at a release: run when a version is published, and again when a rollback brings it back.

The cases that ran at publication are part of the report that the registry keeps. A rollback runs those, and depends on
no folder.
"""

from collections.abc import Sequence

from contextplane.errors import ContextPlaneError
from contextplane.evaluation.golden import GoldenFile, Ran, check, golden_documents
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.json.parse import parse
from contextplane.registry.artifacts import Candidate
from contextplane.registry.reports import Golden
from contextplane.runtime.published_source import from_value

__all__ = ["kept_cases"]


_NAMED = 3


def kept_cases(report: bytes | None, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> Golden:
    """Run the cases that were kept when the version was published. `report`: what was; None when it is not."""
    if report is None:
        return Golden(outcome="not_run", words="no golden cases were given: --golden DIR names them")
    said = parse(report).value
    golden = said.get("golden") if isinstance(said, dict) else None
    documents = golden.get("documents") if isinstance(golden, dict) else None
    if not isinstance(documents, list) or not documents:
        return Golden(outcome="not_run", words="no golden cases were given when it was published")
    try:
        files = golden_documents(documents)
    except ContextPlaneError as error:
        return Golden(outcome="failed", words=f"{error.code}: {error.message}", documents=tuple(documents))
    return run_cases(files, ref, value, catalogs)


def run_cases(files: Sequence[GoldenFile], ref: PackRef, value: Json, catalogs: Sequence[Candidate]) -> Golden:
    if not isinstance(value, dict) or "pack_meta" not in value:
        return Golden(outcome="not_run", words=f"golden cases are for packs, and {ref} is none")
    documents: tuple[Json, ...] = tuple({"name": file.name, "case": file.file.file.value} for file in files)
    names = tuple(file.name for file in files)
    try:
        ran = check(from_value(value, catalogs), files)
    except ContextPlaneError as error:
        return Golden(outcome="failed", words=f"{error.code}: {error.message}", cases=names, documents=documents)
    drifted = [result for result in ran if not result.passed]
    if not drifted:
        return Golden(outcome="passed", words=f"{len(ran)} as recorded", cases=names, documents=documents)
    return Golden(
        outcome="failed", words=_told(drifted), cases=tuple(result.name for result in drifted), documents=documents
    )


def _told(drifted: Sequence[Ran]) -> str:
    """The first that drifted, each with its stage; how many more there are."""
    first = "; ".join(f"{result.name} drifted at {result.stage} ({result.words})" for result in drifted[:_NAMED])
    more = f"; and {len(drifted) - _NAMED} more" if len(drifted) > _NAMED else ""
    return first + more
