"""One context pack and any catalogs: what they say together, or why they cannot. Nothing is overridden or left out."""

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.authoring.gates.table import judge_pack
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import DecisionCatalog
from contextplane.model.context_pack import ContextPack
from contextplane.registry.merge import (
    MergeConflict,
    MergedPack,
    MergedViewInvalid,
    MergeInput,
    judge_merged,
    merge_documents,
)
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.packs import CASES, ENVIRONMENT, EXAMPLE, with_changes

CATALOG: dict[str, Any] = json.loads((CASES.parent / "decision_catalog" / "support.json").read_text(encoding="utf-8"))
OWN = EXAMPLE["decision_layer"]["decision_specs"][0]


def pack(value: Any = EXAMPLE) -> MergeInput:  # noqa: ANN401  any JSON
    return MergeInput(document=msgspec.convert(value, ContextPack), value=value)


def catalog(name: str = "decision-catalog.support", **parts: Any) -> MergeInput:  # noqa: ANN401  any JSON
    value = {**CATALOG, "catalog_id": name, **parts}
    return MergeInput(document=msgspec.convert(value, DecisionCatalog), value=value)


def specs_of(whole: MergedPack) -> list[str]:
    return [decision_spec.decision_key for decision_spec in whole.pack.decision_layer.decision_specs]


def test_a_pack_alone_is_itself() -> None:
    whole = merge_documents([pack()])
    assert (whole.value, whole.intents) == (EXAMPLE, ())
    assert whole.pack == msgspec.convert(EXAMPLE, ContextPack)
    assert [(part.kind, part.key, part.origins) for part in whole.parts] == [
        ("decision_spec", "support.refund.execute", ("ctxpack.support@1.0.0",))
    ]


def test_a_catalog_adds_decisions_plans_and_intents_and_changes_nothing_else() -> None:
    whole = merge_documents([pack(), catalog()])
    assert specs_of(whole) == ["support.refund.execute", "support.refund.review"]
    assert [task_template.template_id for task_template in whole.pack.task_layer.task_templates] == ["refund.review"]
    assert [intent.intent_id for intent in whole.intents] == ["support.refund"]
    assert isinstance(whole.value, dict)
    same = {key: value for key, value in whole.value.items() if key not in {"decision_layer", "task_layer"}}
    assert same == {key: value for key, value in EXAMPLE.items() if key not in {"decision_layer", "task_layer"}}
    assert judge_pack(whole.value).passed
    assert {part.key: part.origins for part in whole.parts} == {
        "support.refund.execute": ("ctxpack.support@1.0.0",),
        "support.refund.review": ("decision-catalog.support@2.1.0",),
        "support.refund": ("decision-catalog.support@2.1.0",),
        "refund.review": ("decision-catalog.support@2.1.0",),
    }


def test_what_two_say_alike_is_there_once_with_both_origins_however_they_write_it() -> None:
    again = catalog(
        "decision-catalog.other", decision_specs=[{**CATALOG["decision_specs"][0], "challenge_required": False}]
    )
    whole = merge_documents([again, pack(), catalog()])
    assert specs_of(whole) == ["support.refund.execute", "support.refund.review"]
    both = ("decision-catalog.other@2.1.0", "decision-catalog.support@2.1.0")
    assert {part.key: part.origins for part in whole.parts if part.kind != "intent"}["support.refund.review"] == both


def test_a_pack_may_say_the_same_as_a_catalog() -> None:
    whole = merge_documents([pack(), catalog(decision_specs=[*CATALOG["decision_specs"], OWN])])
    assert specs_of(whole) == ["support.refund.execute", "support.refund.review"]
    (own,) = [part for part in whole.parts if part.key == "support.refund.execute"]
    assert own.origins == ("ctxpack.support@1.0.0", "decision-catalog.support@2.1.0")


@cases(
    ("documents", "origins", "key"),
    [
        (
            [pack(), catalog(decision_specs=[*CATALOG["decision_specs"], {**OWN, "approval_mode": "read_only"}])],
            ["ctxpack.support@1.0.0", "decision-catalog.support@2.1.0"],
            "support.refund.execute",
        ),
        (
            [
                pack(),
                catalog(),
                catalog("z", decision_specs=[{**CATALOG["decision_specs"][0], "owner_role": "finance"}]),
            ],
            ["decision-catalog.support@2.1.0", "z@2.1.0"],
            "support.refund.review",
        ),
        (
            [pack(), catalog(), catalog("z", intents=[{**CATALOG["intents"][0], "risk_class": "network"}])],
            ["decision-catalog.support@2.1.0", "z@2.1.0"],
            "support.refund",
        ),
        (
            [
                pack(),
                catalog(),
                catalog(
                    "z",
                    task_templates=[
                        {**CATALOG["task_templates"][0], "steps": [CATALOG["task_templates"][0]["steps"][0]]}
                    ],
                ),
            ],
            ["decision-catalog.support@2.1.0", "z@2.1.0"],
            "refund.review",
        ),
    ],
    ids=["a decision of the pack", "a decision", "an intent", "a plan"],
)
def test_what_two_say_differently_is_refused_with_both_origins(
    documents: list[MergeInput], origins: list[str], key: str
) -> None:
    for order in (documents, documents[::-1]):
        with pytest.raises(MergeConflict) as refused:
            merge_documents(order)
        assert (refused.value.code, refused.value.at) == ("merge_conflict", key)
        assert refused.value.details["origins"] == origins


def test_one_and_true_are_two_things_to_a_condition() -> None:
    spec = CATALOG["decision_specs"][0]
    other = {**spec, "eligibility_rules": {"==": [{"var": "request.context.identity_verified"}, 1]}}
    with pytest.raises(MergeConflict):
        merge_documents([pack(), catalog(), catalog("z", decision_specs=[other])])


BOUND = with_changes(
    [{"at": "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding", "value": "support.refund.review"}]
)


@proves("context-pack:references:decision-catalog")
def test_a_rule_may_be_bound_to_a_decision_of_a_catalog_that_the_pack_draws_on() -> None:
    assert "decision_binding_unknown" in {finding.code for finding in judge_pack(BOUND, ENVIRONMENT).findings}
    assert "decision_binding_unknown" in {finding.code for finding in judge_merged([pack(BOUND)], ENVIRONMENT).findings}
    assert judge_merged([catalog(), pack(BOUND)], ENVIRONMENT).passed
    assert (
        merge_documents([pack(BOUND), catalog()]).pack.decision_layer.decision_specs[1].decision_key
        == "support.refund.review"
    )
    with pytest.raises(MergeConflict):
        judge_merged([pack(), catalog(decision_specs=[{**OWN, "owner_role": "somebody"}])])


OTHER = with_changes([{"at": "/pack_meta/pack_id", "value": "ctxpack.other"}])
NEWER = with_changes([{"at": "/pack_meta/pack_version", "value": "2.0.0"}])


@cases(
    ("documents", "code"),
    [
        ([], "context_pack_missing"),
        ([catalog()], "context_pack_missing"),
        ([pack(), pack(OTHER)], "context_pack_ambiguous"),
        ([pack(), pack()], "reference_repeated"),
        ([pack(), pack(NEWER)], "reference_repeated"),
        ([pack(), catalog(), catalog()], "reference_repeated"),
        ([pack(), catalog(), catalog(catalog_version="2.2.0")], "reference_repeated"),
        ([pack(), catalog("ctxpack.support")], "reference_repeated"),
    ],
)
def test_there_is_exactly_one_pack_and_no_document_twice(documents: list[MergeInput], code: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        merge_documents(documents)
    assert (refused.value.code, refused.value.family) == (code, "refused")


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ({"at": "/task_templates/0/steps/0/tool", "value": "adp_ledger.post"}, "task_template_unresolved"),
        ({"at": "/task_templates/0/steps/1/tool", "value": "adp_payments.issue_refund"}, "decision_below_tool"),
        ({"at": "/decision_specs/0/required_evidence/0", "value": "moon_phase"}, "required_evidence_unobtainable"),
    ],
)
def test_a_catalog_that_does_not_fit_its_pack_is_refused_by_the_law_that_both_break(
    change: dict[str, Any], law: str
) -> None:
    value = with_changes([change], CATALOG)
    with pytest.raises(MergedViewInvalid) as refused:
        merge_documents([pack(), MergeInput(document=msgspec.convert(value, DecisionCatalog), value=value)])
    assert refused.value.code == "merged_view_invalid"
    assert law in {finding["code"] for finding in refused.value.details["findings"]}  # type: ignore[attr-defined]


# --- the laws, for any catalogs ---------------------------------------------------------------------------------------

SPEC, PLAN, INTENT = CATALOG["decision_specs"][0], CATALOG["task_templates"][0], CATALOG["intents"][0]


def part(kind: str, number: int, variant: int) -> dict[str, Any]:
    """Part `number` of a kind; variants of one number have one key and say different things."""
    if kind == "decision_specs":
        return {**SPEC, "decision_key": f"d{number}", "owner_role": f"role_{variant}"}
    if kind == "task_templates":
        steps = [{**PLAN["steps"][0], "params": {"n": variant}}]
        return {**PLAN, "template_id": f"t{number}", "decision_key": f"d{number}", "steps": steps}
    return {**INTENT, "intent_id": f"i{number}", "description": f"variant {variant}"}


@st.composite
def catalogs(draw: st.DrawFn) -> list[MergeInput]:
    """Up to four catalogs of a few decisions, each with its plan, and of intents; now and then two disagree."""
    variants = draw(st.sampled_from([(0,), (0,), (0, 1)]))
    merged = []
    for n in range(draw(st.integers(0, 4))):
        numbers = draw(st.lists(st.integers(0, 4), min_size=1, unique=True))
        drawn = {
            kind: [part(kind, number, draw(st.sampled_from(variants))) for number in numbers]
            for kind in ("decision_specs", "task_templates", "intents")
        }
        merged.append(catalog(f"catalog.{n}", **drawn))
    return merged


def outcome(documents: list[MergeInput]) -> MergedPack | dict[str, Any]:
    try:
        return merge_documents(documents)
    except MergeConflict as refused:
        return {"key": refused.at, **refused.details}


@given(st.data(), catalogs())
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_documents_does_not_matter(data: st.DataObject, added: list[MergeInput]) -> None:
    documents = [pack(), *added]
    assert outcome(data.draw(st.permutations(documents))) == outcome(documents)


@given(catalogs())
@settings(max_examples=60, deadline=None)
def test_every_part_is_there_once_with_its_origins_or_all_is_refused(added: list[MergeInput]) -> None:
    definitions: dict[tuple[str, str], dict[str, str]] = {}
    for other in added:
        document = other.document
        assert isinstance(document, DecisionCatalog)
        rows = [("decision_spec", x.decision_key, x) for x in document.decision_specs]
        rows += [("task_template", x.template_id, x) for x in document.task_templates]  # type: ignore[misc]
        rows += [("intent", x.intent_id, x) for x in document.intents]  # type: ignore[misc]
        for kind, key, typed in rows:
            definitions.setdefault((kind, key), {})[str(other.ref)] = repr(typed)
    disagree = any(len(set(of.values())) > 1 for of in definitions.values())
    whole = outcome([pack(), *added])
    assert isinstance(whole, MergedPack) is not disagree
    if not isinstance(whole, MergedPack):
        return
    added_parts = {(part.kind, part.key): part.origins for part in whole.parts if part.origins[0] != str(pack().ref)}
    assert added_parts == {key: tuple(sorted(of)) for key, of in definitions.items()}
    keys = [decision_spec.decision_key for decision_spec in whole.pack.decision_layer.decision_specs]
    keys += [task_template.template_id for task_template in whole.pack.task_layer.task_templates]
    keys += [intent.intent_id for intent in whole.intents]
    assert sorted(keys) == sorted([OWN["decision_key"], *(key for _, key in definitions)])
    assert (
        whole.pack.decision_layer.decision_specs[0]
        == msgspec.convert(EXAMPLE, ContextPack).decision_layer.decision_specs[0]
    )


def test_merging_leaves_the_documents_as_they_were() -> None:
    documents = [pack(copy.deepcopy(EXAMPLE)), catalog()]
    before = msgspec.json.encode([document.value for document in documents])
    merge_documents(documents)
    assert msgspec.json.encode([document.value for document in documents]) == before
