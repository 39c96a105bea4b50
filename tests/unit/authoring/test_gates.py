"""The gates as a whole: pure, independent of order, and of one mind with the JSON Schema."""

import copy
import json
from importlib.resources import files
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.authoring.gates.schema import SCHEMAS, schema_of
from contextplane.authoring.gates.table import LAWS, judge_pack
from contextplane.authoring.overlay.resolved_view import OverlayUnsafe, resolve_view
from contextplane.authoring.subject import Subject
from contextplane.model.artifact import EnvironmentDescription, Overlay
from contextplane.model.context_pack import ContextPack
from docs.schemas import PUBLISHED
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.changes import NARROWING, overlay
from tests.unit.authoring.packs import CASES, ENVIRONMENT, EXAMPLE, changed, findings, leaves, part, with_changes

BREAKS: list[dict[str, Any]] = json.loads((CASES / "breaks.json").read_text(encoding="utf-8"))
LISTS = (
    *("policy_layer/policy_bundles", "policy_layer/approval_gates", "policy_layer/guardrails/must_refuse"),
    *("tooling_layer/adapter_registry", "tooling_layer/permissions", "decision_layer/decision_specs"),
    *("evaluation_layer/eval_targets", "evaluation_layer/release_gates", "intelligence_refs/ontology/entity_types"),
)


def findings_without_positions(pack: Any) -> set[tuple[str, str, str]]:  # noqa: ANN401  any JSON
    """Return the findings without positions, neither in the place nor in the words."""
    strip = str.maketrans("", "", "0123456789")
    return {(finding.code, finding.at.translate(strip), finding.cause.translate(strip)) for finding in findings(pack)}


@given(st.data(), st.sampled_from([case for case in BREAKS if case["code"] != "id_repeated"]))
def test_the_order_of_parts_does_not_change_what_is_found(data: st.DataObject, case: dict[str, Any]) -> None:
    pack = with_changes(case["changes"])
    shuffled = copy.deepcopy(pack)
    for path in LISTS:
        *parents, last = path.split("/")
        parent = shuffled
        for step in parents:
            parent = parent.get(step, {}) if isinstance(parent, dict) else {}
        if isinstance(parent, dict) and isinstance(parent.get(last), list):
            parent[last] = data.draw(st.permutations(parent[last]))
    assert findings_without_positions(shuffled) == findings_without_positions(pack)


def test_a_condition_that_cannot_be_told_leaves_the_others_their_budget() -> None:
    rules = "/policy_layer/policy_bundles/0/policy_dsl/rules"
    facts = [{"var": f"request.context.v{n}"} for n in range(12)]
    hard = {"==": [{"+": facts}, 77.7]}
    never = {"or": [{"and": [{">": [fact, 5]}, {"<": [fact, 3]}]} for fact in facts]}
    asks = part(EXAMPLE, f"{rules}/1")
    many = [{**asks, "rule_id": f"R_{n}", "if": hard if n < 5 else never} for n in range(10)]
    crowded = with_changes([{"at": f"{rules}/-", "value": rule} for rule in many])
    severities = [finding.severity for finding in findings(crowded) if finding.code == "rule_unreachable"]
    assert sorted(severities) == ["error"] * 5 + ["unknown"] * 5


@given(st.permutations(LAWS), st.sampled_from(BREAKS))
@settings(max_examples=20)
def test_the_order_of_laws_does_not_change_what_is_found(laws: list[Any], case: dict[str, Any]) -> None:
    pack = with_changes(case["changes"])
    report = judge_pack(pack, ENVIRONMENT)
    if report.not_run:
        return
    subject = Subject(msgspec.convert(pack, type=ContextPack), pack, ENVIRONMENT)
    reordered = [finding for law in laws for finding in law.findings(subject)]
    assert sorted(map(repr, reordered)) == sorted(map(repr, report.findings))


@cases("known", [None, ENVIRONMENT], ids=["no environment", "the environment"])
def test_a_law_about_a_part_finds_nothing_where_that_part_is_empty(known: EnvironmentDescription | None) -> None:
    skipped: set[str] = set()
    bounds, mode = "/tooling_layer/permissions/2/arg_constraints", "/tooling_layer/adapter_registry/2/approval_mode"
    harmless = {"note": "it only reads", "changes": [{"at": bounds, "value": {}}, {"at": mode, "value": "read_only"}]}
    for case in (harmless, *BREAKS):
        pack = with_changes(case["changes"])
        if judge_pack(pack).not_run:
            continue
        subject = Subject(msgspec.convert(pack, type=ContextPack), pack, known)
        empty = [law for law in LAWS if law.about and not getattr(subject, law.about)]
        skipped.update(law.code for law in empty)
        assert [law.code for law in empty if list(law.check(subject))] == [], case["note"]
    about_parts = {law.code for law in LAWS if law.about}
    about_environment = {law.code for law in LAWS if law.about == "described_environment"}
    assert skipped == (about_parts - about_environment if known else about_parts)


@cases("case", BREAKS[::7], ids=lambda case: case["note"])
def test_judging_changes_nothing_and_says_the_same_again(case: dict[str, Any]) -> None:
    pack = with_changes(case["changes"])
    before = json.dumps(pack)
    assert judge_pack(pack, ENVIRONMENT) == judge_pack(copy.deepcopy(pack), ENVIRONMENT)
    assert json.dumps(pack) == before


VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    1.5,
    10**9,
    "",
    "x",
    "1.0.0",
    "a b",
    "read_only",
    "\u0430",
    [],
    ["x"],
    {},
)
PLACES = [at for at, _ in leaves(EXAMPLE)]
PARENTS = sorted({"/".join(at.split("/")[:n]) for at in PLACES for n in range(2, at.count("/") + 1)})


def agree(pack: Any, document: type[msgspec.Struct]) -> bool:  # noqa: ANN401  any JSON
    """Return whether the types accept a document, and assert that the schema agrees."""
    try:
        msgspec.convert(pack, type=document)
        typed = True
    except msgspec.ValidationError:
        typed = False
    assert jsonschema_rs.Draft202012Validator(schema_of(document)).is_valid(pack) is typed
    return typed


@proves("context-pack:references:pack-type")
@cases("value", VALUES, ids=repr)
def test_types_and_schema_accept_the_same_packs_whatever_is_changed(value: Any) -> None:  # noqa: ANN401  any JSON
    validator = jsonschema_rs.Draft202012Validator(schema_of(ContextPack))
    refused = 0
    for at in (*PLACES, *PARENTS):
        pack = changed(at, value)
        try:
            msgspec.convert(pack, type=ContextPack)
            typed = True
        except msgspec.ValidationError:
            typed = False
        assert validator.is_valid(pack) is typed, (at, value)
        refused += not typed
    assert refused


@cases("at", [*PLACES, *PARENTS])
def test_types_and_schema_agree_when_a_part_is_missing_or_renamed(at: str) -> None:
    agree(with_changes([{"at": at}]), ContextPack)
    if not at.rpartition("/")[2].isdigit():
        agree(with_changes([{"at": f"{at}_x", "value": 1}]), ContextPack)


@cases("value", VALUES, ids=repr)
def test_types_and_schema_accept_the_same_overlays(value: Any) -> None:  # noqa: ANN401  any JSON
    document = msgspec.to_builtins(overlay(NARROWING[0]))
    assert agree(document, Overlay)
    for name in (*document, "extra"):
        agree({**document, name: value}, Overlay)


def without_texts(schema: Any) -> Any:  # noqa: ANN401  any JSON
    """A schema without what is only for people."""
    if isinstance(schema, list):
        return [without_texts(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    texts = [key for key in ("title", "description") if isinstance(schema.get(key), str)]
    return {key: without_texts(part) for key, part in schema.items() if key not in texts}


@proves("context-pack:references:pack-schema", "context-pack:gates:schema-valid", "context-pack:full-example:validates")
def test_the_schemas_that_are_checked_in_are_those_of_the_types_and_the_example_is_valid() -> None:
    folder = files("contextplane").joinpath("schemas")
    assert {path.name for path in folder.iterdir()} == {entry.file for entry in PUBLISHED}
    for entry in PUBLISHED:
        written = json.loads((folder / entry.file).read_text(encoding="utf-8"))
        assert written == entry.render(), "run 'make docs'"
        jsonschema_rs.meta.validate(written)
        if entry.file in SCHEMAS:
            assert without_texts(written) == without_texts(schema_of(SCHEMAS[entry.file]))
    validator = jsonschema_rs.Draft202012Validator(json.loads((folder / "context-pack.v2.schema.json").read_text()))
    assert validator.is_valid(EXAMPLE)
    assert judge_pack(EXAMPLE).passed


@proves("context-pack:layer-examples:each-example-validates")
@cases("layer", list(EXAMPLE))
def test_each_layer_of_the_example_is_one_by_the_schema(layer: str) -> None:
    whole = schema_of(ContextPack)
    part = whole["$defs"]["ContextPack"]["properties"][layer]
    jsonschema_rs.Draft202012Validator({**part, "$defs": whole["$defs"]}).validate(EXAMPLE[layer])


def test_personal_numbers_are_told_by_whoever_knows_them_and_otherwise_it_is_said_that_nobody_could() -> None:
    pack = changed("/tone_and_comms/do/0", "never repeat 2341 2341 2346 to anybody")
    unknown = [finding for finding in judge_pack(pack).findings if finding.code == "personal_number_present"]
    assert [finding.severity for finding in unknown] == ["unknown"]
    known = judge_pack(pack, identify=lambda text: "Aadhaar number" if text == "2341 2341 2346" else None).findings
    assert [finding.severity for finding in known if finding.code == "personal_number_present"] == ["error"]
    assert not [
        finding
        for finding in judge_pack(pack, identify=lambda _: None).findings
        if finding.code == "personal_number_present"
    ]


def test_what_belongs_in_no_pack_belongs_in_no_overlay() -> None:
    note = (("/policy_layer/guardrails/must_refuse/x", {"id": "x", "message": "TODO: ask"}),)
    with pytest.raises(OverlayUnsafe, match="operator_note_present"):
        resolve_view(EXAMPLE, [overlay(note)])


@given(st.text(alphabet="ghp_abAB12-:=\n ", max_size=40), st.integers(0, 600_000))
@settings(max_examples=15)
def test_a_secret_is_found_however_much_stands_around_it(around: str, before: int) -> None:
    text = f"{'word ' * (before // 5)}{around} ghp_{'a1B2' * 9} {around}"
    step = {"id": "a", "tool": "adp_orders.lookup", "params": {"note": text}}
    template = {
        "template_id": "t",
        "intent": "support.refund",
        "decision_key": "support.refund.execute",
        "steps": [step],
    }
    pack = with_changes([{"at": "/task_layer", "value": {"task_templates": [template]}}])
    at = "/task_layer/task_templates/0/steps/0/params/note"
    assert ("secret_present", at) in [(finding.code, finding.at) for finding in findings(pack)]
