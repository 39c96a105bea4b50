"""Golden cases at a release: those of a folder when a version is published, the ones kept with it when it comes back.

Cases that ran when a version was published stand in the report that the registry keeps of it. A rollback runs those
again, and does not depend on any folder.
"""

from collections.abc import Sequence

from contextplane.app.golden import GoldenCaseInvalid, GoldenFile, Ran, check, golden_documents, golden_files
from contextplane.errors import ContextPlaneError
from contextplane.model.canonical import Json
from contextplane.model.ids import PackRef
from contextplane.model.json_text import parse
from contextplane.policy.secrets import secret_shapes
from contextplane.registry.artifacts import Candidate
from contextplane.registry.reports import Golden

__all__ = ["FolderCases", "kept_cases"]

_NAMED = 3


class FolderCases:
    """The cases of a folder."""

    def __init__(self, folder: str) -> None:
        self._files = golden_files(folder)
        for one in self._files:
            if secret_shapes(one.file.file.canonical):
                raise GoldenCaseInvalid(
                    "holds something that looks like a secret, and would be kept for ever",
                    at=one.file.path,
                    hint="take it out; a case needs no real one",
                )

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> Golden:
        return _golden(self._files, ref, value, catalogs)


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
    return _golden(files, ref, value, catalogs)


def _golden(files: Sequence[GoldenFile], ref: PackRef, value: Json, catalogs: Sequence[Candidate]) -> Golden:
    if not isinstance(value, dict) or "pack_meta" not in value:
        return Golden(outcome="not_run", words=f"golden cases are for packs, and {ref} is none")
    from contextplane.app.compiling import from_value

    documents: tuple[Json, ...] = tuple({"name": one.name, "case": one.file.file.value} for one in files)
    names = tuple(one.name for one in files)
    try:
        ran = check(from_value(value, catalogs), files)
    except ContextPlaneError as error:
        return Golden(outcome="failed", words=f"{error.code}: {error.message}", cases=names, documents=documents)
    drifted = [one for one in ran if not one.passed]
    if not drifted:
        return Golden(outcome="passed", words=f"{len(ran)} as recorded", cases=names, documents=documents)
    return Golden(outcome="failed", words=_told(drifted), cases=tuple(one.name for one in drifted), documents=documents)


def _told(drifted: Sequence[Ran]) -> str:
    """The first that drifted, each with its stage; how many more there are."""
    first = "; ".join(f"{one.name} drifted at {one.stage} ({one.words})" for one in drifted[:_NAMED])
    more = f"; and {len(drifted) - _NAMED} more" if len(drifted) > _NAMED else ""
    return first + more
