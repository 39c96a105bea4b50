"""Several documents in one invocation: one context pack, and catalogs that add to it.

    1  exactly one of them is a context pack, and no id is there twice
    2  a catalog adds intents, task templates and decisions, and nothing else
    3  two documents may say the same of one key; that they say different things of it is refused, with both origins
    4  what comes out is a context pack again: it has the form of one, and passes every gate

So nothing of a pack is ever overridden, and no part is left out: every one is in the result once, with all documents
that say it. The order of the documents does not matter.

Decision catalogs that a pack is judged together with, because its rules are bound to decisions of them. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, cast

import msgspec

from contextplane.authoring.environment import Surroundings
from contextplane.authoring.finding import Finding
from contextplane.authoring.gates.table import Report, judged
from contextplane.authoring.texts import Identify
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import DecisionCatalog, Intent
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value
from contextplane.registry.artifacts import Candidate
from contextplane.registry.errors import WrongKind
from contextplane.registry.events import JudgedWith

__all__ = [
    "ContextPackAmbiguous",
    "ContextPackMissing",
    "Given",
    "IdRepeated",
    "MergeConflict",
    "Merged",
    "MergedViewInvalid",
    "Part",
    "PartKind",
    "given",
    "judged_together",
    "judged_with",
    "merged",
    "named",
    "put_together",
    "refs_of",
]

PartKind = Literal["decision_spec", "task_template", "intent"]
_LAYERS = {"decision_spec": "decision_layer", "task_template": "task_layer"}


class ContextPackMissing(ContextPlaneError):
    """An invocation without a context pack: catalogs and overlays alone govern nothing."""

    code: ClassVar[str] = "context_pack_missing"
    family: ClassVar[Family] = "refused"


class ContextPackAmbiguous(ContextPlaneError):
    """An invocation with several context packs: nobody says which of them governs."""

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


class Given(Value, frozen=True):
    """A document of an invocation, typed and as it was written.

    `alone`: it passed every gate by itself, and not only together with catalogs.
    """

    document: ContextPack | DecisionCatalog
    value: Json
    alone: bool = True

    @property
    def ref(self) -> PackRef:
        return self.document.ref


class Part(Value, frozen=True, order=True):
    """One part of the whole, and every document that says it."""

    kind: PartKind
    key: str
    origins: tuple[str, ...]


class Merged(Value, frozen=True):
    """The pack with what the catalogs add. `parts` lists every decision, plan and intent with its origins."""

    pack: ContextPack
    value: Json
    intents: tuple[Intent, ...]
    parts: tuple[Part, ...]


class _Said(Value, frozen=True):
    """What one document says of one key: as it was written, and in the one form in which it is compared."""

    kind: PartKind
    key: str
    written: Json
    compared: bytes
    origin: str


def merged(documents: Iterable[Given]) -> Merged:
    """Put the documents of one invocation together, or refuse."""
    # (1) to (3)
    given = tuple(documents)
    pack, said = _put_together(given)
    value = _with_parts(pack, said)
    # (4) together they are a pack. One that passed its gates alone when it was published need not do so again.
    typed = _typed(value) if len(given) > 1 or not pack.alone else cast("ContextPack", pack.document)
    intents = {one.key: one.written for one in said if one.kind == "intent"}
    origins: dict[tuple[PartKind, str], set[str]] = {}
    for one in said:
        origins.setdefault((one.kind, one.key), set()).add(one.origin)
    return Merged(
        pack=typed,
        value=value,
        intents=tuple(msgspec.convert(intents[key], Intent) for key in sorted(intents)),
        parts=tuple(
            Part(kind=kind, key=key, origins=tuple(sorted(named))) for (kind, key), named in sorted(origins.items())
        ),
    )


def judged_together(
    documents: Iterable[Given], surroundings: Surroundings | None = None, *, identify: Identify | None = None
) -> Report:
    """What the gates say of a pack with the catalogs that it draws on: its rules may be bound to their decisions."""
    return judged(put_together(documents), surroundings, identify=identify)


def put_together(documents: Iterable[Given]) -> Json:
    """A pack with what its catalogs add, judged by nobody yet."""
    return _with_parts(*_put_together(tuple(documents)))


def _put_together(documents: tuple[Given, ...]) -> tuple[Given, tuple[_Said, ...]]:
    """The pack, and all that it and the catalogs say, in an order that does not depend on the one given."""
    # (1) one pack, and every id once
    given = sorted(documents, key=lambda document: document.ref)
    pack = _the_pack(given)
    # (2) what each document says, the pack first, (3) and whether they agree
    first: dict[tuple[PartKind, str], _Said] = {}
    found: list[_Said] = []
    for one in (pack, *(other for other in given if other is not pack)):
        for said in _said(one):
            _refuse_other_content(first.setdefault((said.kind, said.key), said), said)
            found.append(said)
    return pack, tuple(found)


def _the_pack(given: list[Given]) -> Given:
    seen: dict[str, PackRef] = {}
    for one in given:
        ref = one.ref
        if ref.pack_id in seen:
            raise IdRepeated(f"{seen[ref.pack_id]} and {ref} are in one invocation", hint="name each document once")
        seen[ref.pack_id] = ref
    packs = [one for one in given if isinstance(one.document, ContextPack)]
    if not packs:
        raise ContextPackMissing("no context pack is named", hint="name the pack that governs the run")
    if len(packs) > 1:
        named = ", ".join(str(pack.ref) for pack in packs)
        raise ContextPackAmbiguous(f"{len(packs)} context packs are named: {named}", hint="a run has exactly one")
    return packs[0]


def _said(given: Given) -> Iterator[_Said]:
    document, value = given.document, cast("dict[str, Any]", given.value)
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
        for n, one in enumerate(typed):
            yield _Said(
                kind=kind,
                key=getattr(one, field),
                written=holder[f"{kind}s"][n],
                compared=canonical(cast("Json", msgspec.to_builtins(one))),
                origin=str(given.ref),
            )


def _refuse_other_content(first: _Said, said: _Said) -> None:
    if first.compared != said.compared:
        what = said.kind.replace("_", " ")
        raise MergeConflict(
            f"{first.origin} and {said.origin} say different things of the {what} {said.key!r}",
            at=said.key,
            hint="publish one of them with another key, or both with the same content",
            details={"kind": said.kind, "key": said.key, "origins": [first.origin, said.origin]},
        )


def _with_parts(pack: Given, said: tuple[_Said, ...]) -> Json:
    """The pack's document with more decisions and plans after its own, in the order of their keys."""
    own = {(one.kind, one.key) for one in said if one.origin == str(pack.ref)}
    after = dict(cast("dict[str, Any]", pack.value))
    for kind, layer in _LAYERS.items():
        more = {one.key: one.written for one in said if one.kind == kind and (kind, one.key) not in own}
        if more:
            after[layer] = {
                f"{kind}s": [*after.get(layer, {}).get(f"{kind}s", []), *(more[key] for key in sorted(more))]
            }
    return after


def _typed(value: Json) -> ContextPack:
    errors = tuple(finding for finding in judged(value).findings if finding.severity == "error")
    if errors:
        raise _invalid(errors)
    return msgspec.convert(value, ContextPack)


def _invalid(findings: tuple[Finding, ...]) -> MergedViewInvalid:
    first = findings[0]
    return MergedViewInvalid(
        f"{first.cause} ({first.code})",
        at=first.at,
        hint="a catalog fits a pack when both together pass every gate",
        details={
            "findings": [{"code": finding.code, "at": finding.at, "cause": finding.cause} for finding in findings]
        },
    )


def given(pack: Candidate, catalogs: Sequence[Candidate]) -> tuple[Given, ...]:
    """One invocation of them all; what is no pack, or no catalog, is refused."""
    if not isinstance(pack.document, ContextPack):
        raise WrongKind("only a context pack is judged together with catalogs", at=str(pack.ref), hint="leave them out")
    found = [Given(document=pack.document, value=pack.value)]
    for catalog in catalogs:
        if not isinstance(catalog.document, DecisionCatalog):
            raise WrongKind("it is no decision catalog", at=str(catalog.ref), hint="name a decision catalog")
        found.append(Given(document=catalog.document, value=catalog.value))
    return tuple(found)


def judged_with(
    pack: Candidate, catalogs: Sequence[Candidate], surroundings: Surroundings | None, identify: Identify | None
) -> Report:
    """What every gate says of a pack together with catalogs."""
    return judged_together(given(pack, catalogs), surroundings, identify=identify)


def named(catalogs: Sequence[Candidate]) -> tuple[JudgedWith, ...]:
    """The catalogs, as they are put on record."""
    judged_withs = [
        JudgedWith(id=catalog.ref.pack_id, version=catalog.ref.version, digest=str(catalog.digest))
        for catalog in catalogs
    ]
    return tuple(sorted(judged_withs, key=lambda judged_with: judged_with.id))


def refs_of(catalogs: Sequence[JudgedWith]) -> tuple[PackRef, ...]:
    """The names of catalogs that are on record."""
    return tuple(PackRef(catalog.id, catalog.version) for catalog in catalogs)
