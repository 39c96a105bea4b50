"""Merging the documents of one invocation: a context pack and catalogs that add to it. Pure.

    1  exactly one of them is a context pack, and no id occurs twice
    2  a catalog adds intents, task templates and decisions, and nothing else
    3  two documents may define one key equally; different definitions are refused, with both origins
    4  the result is a context pack again: it has the form of one, and passes every gate

So nothing of a pack is ever overridden, and no part is left out: each is in the result once, with all documents that
define it. The order of the documents does not matter.

A pack whose rules bind decisions of catalogs is linted together with them, by the same merge.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, cast

import msgspec

from contextplane.authoring.gates.table import Report, judge_pack
from contextplane.authoring.law import Finding
from contextplane.authoring.texts import Identify
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import DecisionCatalog, EnvironmentDescription, Intent
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value
from contextplane.registry.artifacts import Candidate
from contextplane.registry.errors import WrongKind
from contextplane.registry.events import CatalogReference

__all__ = [
    "ContextPackAmbiguous",
    "ContextPackMissing",
    "IdRepeated",
    "MergeConflict",
    "MergeInput",
    "MergedPack",
    "MergedPart",
    "MergedViewInvalid",
    "PartKind",
    "catalog_references",
    "combine_documents",
    "judge_merged",
    "judge_with_catalogs",
    "merge_documents",
    "merge_inputs",
    "refs_of",
]

PartKind = Literal["decision_spec", "task_template", "intent"]
_LAYERS = {"decision_spec": "decision_layer", "task_template": "task_layer"}


class ContextPackMissing(ContextPlaneError):
    """An invocation without a context pack: catalogs and overlays alone govern nothing."""

    code: ClassVar[str] = "context_pack_missing"
    family: ClassVar[Family] = "refused"


class ContextPackAmbiguous(ContextPlaneError):
    """An invocation with several context packs: it is not clear which of them governs."""

    code: ClassVar[str] = "context_pack_ambiguous"
    family: ClassVar[Family] = "refused"


class IdRepeated(ContextPlaneError):
    """One invocation names the same document twice, in one version or in two."""

    code: ClassVar[str] = "reference_repeated"
    family: ClassVar[Family] = "refused"


class MergeConflict(ContextPlaneError):
    """Two documents of one invocation say different things under one key. `details.origins` names both."""

    code: ClassVar[str] = "merge_conflict"
    family: ClassVar[Family] = "refused"


class MergedViewInvalid(ContextPlaneError):
    """A pack and its catalogs are each in order, and together break laws. `details.findings` lists them."""

    code: ClassVar[str] = "merged_view_invalid"
    family: ClassVar[Family] = "refused"


class MergeInput(Value, frozen=True):
    """A document to merge, typed and as it was written.

    `alone`: it passed every gate by itself, not only together with catalogs.
    """

    document: ContextPack | DecisionCatalog
    value: Json
    alone: bool = True

    @property
    def ref(self) -> PackRef:
        return self.document.ref


class MergedPart(Value, frozen=True, order=True):
    """One part of the merged pack, and every document that defines it."""

    kind: PartKind
    key: str
    origins: tuple[str, ...]


class MergedPack(Value, frozen=True):
    """The pack with what the catalogs add. `parts` lists every decision, plan and intent with its origins."""

    pack: ContextPack
    value: Json
    intents: tuple[Intent, ...]
    parts: tuple[MergedPart, ...]


class _Contribution(Value, frozen=True):
    """The definition of one key in one document: as it was written, and in the form that is compared."""

    kind: PartKind
    key: str
    written: Json
    compared: bytes
    origin: str


def merge_documents(documents: Iterable[MergeInput]) -> MergedPack:
    """Merge the documents of one invocation, or refuse them."""
    # (1) to (3)
    inputs = tuple(documents)
    pack, contributions = _combine(inputs)
    value = _with_parts(pack, contributions)
    # (4) together they are a pack. A pack that passed its gates alone when it was published need not do so again.
    typed = _check_gates(value) if len(inputs) > 1 or not pack.alone else cast("ContextPack", pack.document)
    intents = {part.key: part.written for part in contributions if part.kind == "intent"}
    origins: dict[tuple[PartKind, str], set[str]] = {}
    for part in contributions:
        origins.setdefault((part.kind, part.key), set()).add(part.origin)
    return MergedPack(
        pack=typed,
        value=value,
        intents=tuple(msgspec.convert(intents[key], Intent) for key in sorted(intents)),
        parts=tuple(
            MergedPart(kind=kind, key=key, origins=tuple(sorted(refs))) for (kind, key), refs in sorted(origins.items())
        ),
    )


def judge_merged(
    documents: Iterable[MergeInput],
    surroundings: EnvironmentDescription | None = None,
    *,
    identify: Identify | None = None,
) -> Report:
    """Run the gates over a pack merged with the catalogs whose decisions its rules bind."""
    return judge_pack(combine_documents(documents), surroundings, identify=identify)


def combine_documents(documents: Iterable[MergeInput]) -> Json:
    """Merge a pack with its catalogs, without running any gate."""
    return _with_parts(*_combine(tuple(documents)))


def _combine(documents: tuple[MergeInput, ...]) -> tuple[MergeInput, tuple[_Contribution, ...]]:
    """The pack, and the contributions of all documents, independent of the order of the documents."""
    # (1) one pack, and every id once
    inputs = sorted(documents, key=lambda document: document.ref)
    pack = _find_pack(inputs)
    # (2) the contributions of each document, the pack first, (3) and whether they agree
    first: dict[tuple[PartKind, str], _Contribution] = {}
    contributions: list[_Contribution] = []
    for document in (pack, *(other for other in inputs if other is not pack)):
        for part in _contributions(document):
            _refuse_other_content(first.setdefault((part.kind, part.key), part), part)
            contributions.append(part)
    return pack, tuple(contributions)


def _find_pack(inputs: list[MergeInput]) -> MergeInput:
    seen: dict[str, PackRef] = {}
    for document in inputs:
        ref = document.ref
        if ref.pack_id in seen:
            raise IdRepeated(f"{seen[ref.pack_id]} and {ref} are in one invocation", hint="name each document once")
        seen[ref.pack_id] = ref
    packs = [document for document in inputs if isinstance(document.document, ContextPack)]
    if not packs:
        raise ContextPackMissing("no context pack is named", hint="name the pack that governs the run")
    if len(packs) > 1:
        refs = ", ".join(str(pack.ref) for pack in packs)
        raise ContextPackAmbiguous(f"{len(packs)} context packs are named: {refs}", hint="a run has exactly one")
    return packs[0]


def _contributions(source: MergeInput) -> Iterator[_Contribution]:
    document, value = source.document, cast("dict[str, Any]", source.value)
    if isinstance(document, ContextPack):
        lists: list[tuple[PartKind, str, tuple[Any, ...], Any]] = [
            ("decision_spec", "decision_key", document.decision_layer.decision_specs, value["decision_layer"]),
            ("task_template", "template_id", document.task_layer.task_templates, value.get("task_layer")),
        ]
    else:
        lists = [
            ("decision_spec", "decision_key", document.decision_specs, value),
            ("task_template", "template_id", document.task_templates, value),
            ("intent", "intent_id", document.intents, value),
        ]
    for kind, field, typed, holder in lists:
        for n, part in enumerate(typed):
            yield _Contribution(
                kind=kind,
                key=getattr(part, field),
                written=holder[f"{kind}s"][n],
                compared=canonical(cast("Json", msgspec.to_builtins(part))),
                origin=str(source.ref),
            )


def _refuse_other_content(first: _Contribution, second: _Contribution) -> None:
    if first.compared != second.compared:
        what = second.kind.replace("_", " ")
        raise MergeConflict(
            f"{first.origin} and {second.origin} say different things of the {what} {second.key!r}",
            at=second.key,
            hint="publish one of them with another key, or both with the same content",
            details={"kind": second.kind, "key": second.key, "origins": [first.origin, second.origin]},
        )


def _with_parts(pack: MergeInput, contributions: tuple[_Contribution, ...]) -> Json:
    """The pack's document with the added decisions and plans after its own, ordered by key."""
    own = {(part.kind, part.key) for part in contributions if part.origin == str(pack.ref)}
    merged = dict(cast("dict[str, Any]", pack.value))
    for kind, layer in _LAYERS.items():
        added = {part.key: part.written for part in contributions if part.kind == kind and (kind, part.key) not in own}
        if added:
            merged[layer] = {
                f"{kind}s": [*merged.get(layer, {}).get(f"{kind}s", []), *(added[key] for key in sorted(added))]
            }
    return merged


def _check_gates(value: Json) -> ContextPack:
    errors = tuple(finding for finding in judge_pack(value).findings if finding.severity == "error")
    if errors:
        raise _invalid_error(errors)
    return msgspec.convert(value, ContextPack)


def _invalid_error(findings: tuple[Finding, ...]) -> MergedViewInvalid:
    first = findings[0]
    return MergedViewInvalid(
        f"{first.cause} ({first.code})",
        at=first.at,
        hint="a catalog fits a pack when both together pass every gate",
        details={
            "findings": [{"code": finding.code, "at": finding.at, "cause": finding.cause} for finding in findings]
        },
    )


def merge_inputs(pack: Candidate, catalogs: Sequence[Candidate]) -> tuple[MergeInput, ...]:
    """The inputs of a merge of a pack with catalogs; a document of another kind is refused."""
    if not isinstance(pack.document, ContextPack):
        raise WrongKind("only a context pack is judged together with catalogs", at=str(pack.ref), hint="leave them out")
    inputs = [MergeInput(document=pack.document, value=pack.value)]
    for catalog in catalogs:
        if not isinstance(catalog.document, DecisionCatalog):
            raise WrongKind("it is no decision catalog", at=str(catalog.ref), hint="name a decision catalog")
        inputs.append(MergeInput(document=catalog.document, value=catalog.value))
    return tuple(inputs)


def judge_with_catalogs(
    pack: Candidate,
    catalogs: Sequence[Candidate],
    surroundings: EnvironmentDescription | None,
    identify: Identify | None,
) -> Report:
    """Run every gate over a pack together with catalogs."""
    return judge_merged(merge_inputs(pack, catalogs), surroundings, identify=identify)


def catalog_references(catalogs: Sequence[Candidate]) -> tuple[CatalogReference, ...]:
    """References to catalogs as events record them, ordered by id."""
    judged_withs = [
        CatalogReference(id=catalog.ref.pack_id, version=catalog.ref.version, digest=str(catalog.digest))
        for catalog in catalogs
    ]
    return tuple(sorted(judged_withs, key=lambda judged_with: judged_with.id))


def refs_of(catalogs: Sequence[CatalogReference]) -> tuple[PackRef, ...]:
    """The refs of recorded catalogs."""
    return tuple(PackRef(catalog.id, catalog.version) for catalog in catalogs)
