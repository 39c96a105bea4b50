"""What may stand in no text, as a table: what is found in a text, and how much may be said without any finding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.app.packs.files import official_number
from contextplane.authoring.gates import misplaced_content, security
from contextplane.authoring.gates.table import judge_pack
from tests.support.cases import cases
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE, changed, leaves

CODES = frozenset(law.code for law in (*security.TEXT_LAWS, *misplaced_content.TEXT_LAWS))

# Put together here, so that nothing in this file looks like one.
SECRET, RANDOM = "secret_present", "random_text_present"
HEX = "4bf92f3577b34da6a3ce929d0e0e4736"
LETTERS = "qWxZjKvBnMqPlRtZxCvBnGhTrWq"
SECRETS = {
    "an AWS access key": "AKIA" + "IOSFODNN7EXAMPLE",
    "a GitHub token": "ghp_" + "a1B2" * 9,
    "a GitHub token of letters": "ghp_" + "aBcD" * 9,
    "a fine-grained GitHub token": "github_pat_" + "11AB" * 5 + "22" + "_" + "b2C3" * 14 + "xyz",
    "a Hugging Face token": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "a GitLab token": "glpat-" + "x1Y2z3_4-5a6B7c8D9e0",
    "a Stripe live key": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "a Stripe test key": "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "a Slack bot token": "xoxb-" + "123456789012-abcdef",
    "a Slack user token": "xoxp-" + "123456789012-abcdef",
    "an npm token": "npm_" + "a1B2" * 9,
    "an API key": "sk-proj-" + "abc123def456ghi789jkl",
    "an API key of letters": "sk-" + "abcdefghijklmnopqrstuvwx",
    "a JSON Web Token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "a key block on one line": "-----BEGIN RSA " + "PRIVATE KEY-----MIIEpAIBAAKCAQEA-----END RSA " + "PRIVATE KEY-----",
    "an address with a password": "https://user" + ":pw@host.example/path",
    "a header": "Authorization: " + "Bearer abcdef123456",
    "a password with a colon": "password: " + "hunter2!x",
    "a password in prose": "the password is " + "hunter2",
    "a password with a sign": "pwd=" + "swordfish",
    "a key with its name": "api_key: " + "abc123def456",
    "an AWS secret key with its name": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
}
KEYS = {
    "hexadecimal": HEX,
    "letters only": LETTERS,
    "small letters only": LETTERS.lower(),
    "an AWS secret key without its name": "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
    "letters and digits": "q8Zk2LmP9xVt4RwY7nBc3Df6Gh1Js5",
}
NUMBER, PEOPLE = "personal_number_present", "people_listed"
NOTE, CODE, TALK, RECORD = "operator_note_present", "code_present", "conversation_present", "record_present"
UNSEEN, MIXED = "unseen_character_present", "mixed_scripts_present"

REPORTED: list[tuple[str, set[str]]] = [
    ("Authorization: Basic dXNlcjpwYXNzd29yZA", {SECRET}),
    ("use Bearer ya29.a0AfH6SMBx2 for calls", {SECRET}),
    ("the passphrase is 'battery staple'", {SECRET}),
    ("client_secret=Zx81kLm2Qw", {SECRET}),
    ("postgres://ctx" + ":pw@db.internal/orders", {SECRET}),
    ("zero\u200bwidth ghp_" + "a1B2" * 4 + "\u200b" + "a1B2" * 5, {SECRET, RANDOM, UNSEEN}),
    ("never charge 4111 1111 1111 1111 again", {NUMBER}),
    ("a card of the second series 2223000048400011", {NUMBER}),
    ("the same in groups 2720-9900-0000-0007", {NUMBER}),
    ("4111111111111111,5555555555554444", {NUMBER}),
    ("with dots 4111.1111.1111.1111", {NUMBER}),
    ("with fixed blanks 4111\u00a01111\u00a01111\u00a01111", {NUMBER}),
    ("with thin blanks 4111\u20091111\u20091111\u20091111", {NUMBER}),
    (
        "in wide digits \uff14" + "\uff11" * 15,
        {NUMBER},
    ),
    (
        "in Devanagari \u096a" + "\u0967" * 15,
        {NUMBER},
    ),
    ("taxpayer ABCPE1234F", {NUMBER}),
    ("taxpayer abcpe1234f", {NUMBER}),
    ("pay to DE89 3704 0044 0532 0130 00", {NUMBER}),
    ("pay to de89370400440532013000", {NUMBER}),
    ("pay to gb29nwbk60161331926819", {NUMBER}),
    ("her number is 536-22-8726", {NUMBER}),
    ("SSN 536228726", {NUMBER}),
    ("social security number: 536 22 8726", {NUMBER}),
    ("Aadhaar 2341 2341 2346", {NUMBER}),
    ("CPF 529.982.247-25", {NUMBER}),
    ("as for AB 12 34 56 C", {NUMBER}),
    ("NHS number 943 476 5919", {NUMBER}),
    ("BSN 111222333", {NUMBER}),
    ("ann@acme.example,bob@acme.example,cy@acme.example", {PEOPLE}),
    ("name;email\nAnn;ann@acme.example\nBob;bob@acme.example\nCy;cy@acme.example", {PEOPLE, RECORD}),
    ("call +91 98765 43210, +91 98765 43211 or +91 98765 43212", {PEOPLE}),
    ("(555) 123-4567; 555.123.4568; 555 123 4569", {PEOPLE}),
    ("9876543210,9876543211,9876543212", {PEOPLE}),
    ("Customer: where is my refund? Agent: it is on its way.", {TALK}),
    ("User: hi\nAssistant: hello", {TALK}),
    ("**Customer:** hello\n**Agent:** how can I help?", {TALK}),
    ("customer: it broke. agent: I am sorry.", {TALK}),
    ("TODO", {NOTE}),
    ("TODO: ask finance", {NOTE}),
    ("threshold is 3000 (TODO check)", {NOTE}),
    ("FIXME before the audit", {NOTE}),
    ("Refund at once, as discussed with Ann", {NOTE}),
    ("Note to self: raise the limit", {NOTE}),
    ("SELECT name FROM customers WHERE id = 3", {CODE}),
    ("items.map(item=>{return item})", {CODE}),
    ("customer_id: 4711, order_id: ord_881", {RECORD}),
    ("order=ord_881;customer=cus_77", {RECORD}),
    ("never p\u0430y twice", {MIXED}),
    ("never \uff50ay twice", {MIXED}),
    ("never \u202eyap\u202c twice", {UNSEEN}),
    ("never pay\u200b twice", {UNSEEN}),
    ("never pay\U000e0041\U000e0042 twice", {UNSEEN}),
    ("never pay\x1b[2K twice", {UNSEEN}),
]
ALLOWED = [
    "order number: 10 digits",
    "Order number: 10 digits; customer number: 8 digits",
    "Never mention TODO lists",
    "TODO lists are not shown to customers",
    "Mask the number as XXX-XX-1234",
    "ask the customer for the order id",
    "Tone for the customer: warm; tone for the agent: neutral",
    "System: answer in English.",
    "be clear, be kind, do not promise",
    "say 'we' and not 'I'; never argue",
    "never ask for a password",
    "the password is never shared with anybody",
    "Password: required",
    "the password is case-sensitive",
    "the token is valid for 24h and bound to one run",
    "tokens: 1500",
    "token: support_orders_v1",
    "api_key: ${API_KEY}",
    "Authorization: Bearer <token>",
    "Bearer tokens are exchanged by the gateway",
    "a secret is kept in vault://payments/key2",
    "schema://decision.support.refund.execute.inputs.v1",
    "R_HIGH_VALUE_REQUIRES_APPROVAL_V2_2026",
    "OrderBelongsToCustomerRelationV12",
    "KundenzufriedenheitsumfrageErgebnis",
    "adp_sap_s4hana_mm_po_v2_eu_01",
    "sha256:" + "ab12" * 16,
    "ctx://" + "ab12" * 16,
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "urn:uuid:3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "urn:isbn:9780306406157",
    "ctxpack.support@1.0.0",
    "internal://orders-staging-eu-west-1-replica-02",
    "https://docs.acme.example/policies/returns/v4#limits",
    "kg:order:ord_881#snapshot_kg_2026_05_03_T0930",
    "2026-05-09T00:00:00Z",
    "refunds of INR 50000 and more, within 30 days",
    "call 1800 123 4567 at any hour",
    "call +1 800 123 4567 at any hour",
    "NHS 111, or 0300 303 5678 in working hours",
    "case AB123456C, order 111222333, invoice 52998224725",
    "a BSN has nine digits, and an NHS number ten",
    "write to help@acme.example",
    "adp_sales2024e and plans-2024b",
    "take out what is larger than 10% (rounded up)",
    "let the customer choose = let them stay",
    "select the plan from the list",
    "remove the note after the refund",
    "explain the fix, and do not promise a quick fix",
    "caf\u00e9, Stra\u00dfe, \u0928\u092e\u0938\u094d\u200d\u0924\u0947 and \u043f\u0440\u0438\u0432\u0435\u0442",
    "smile \U0001f469\u200d\U0001f4bb \u2764\ufe0f, within 5 \u00b5s or \u0394t",
    "Refunds \u2013 \u201cfast\u201d and fair\u2026",
    "first line\nsecond line: with a colon",
]


def codes(text: object, at: str = "/tone_and_comms/do/0") -> set[str]:
    """Return the codes of the laws about texts that the example breaks with this text in it."""
    report = judge_pack(changed(at, text), ENVIRONMENT, identify=official_number)
    findings = [finding for finding in report.findings if finding.code in CODES]
    assert {finding.at for finding in findings} <= {at}
    assert {finding.severity for finding in findings} <= {"error"}
    return {finding.code for finding in findings}


@cases(("text", "expected"), REPORTED)
def test_what_does_not_belong_in_a_text_is_found(text: str, expected: set[str]) -> None:
    assert codes(text) == expected


@cases("text", ALLOWED)
def test_what_an_author_may_say_is_left_alone(text: str) -> None:
    assert codes(text) == set()


@cases("around", ["{}", "use {} now", "({})", "a\n{}\nb", "see {}."])
@cases("kind", SECRETS)
def test_every_shape_of_a_secret_is_found_whatever_stands_around_it(kind: str, around: str) -> None:
    assert SECRET in codes(around.format(SECRETS[kind]))


@cases("around", ["{}", "use {} now", "({})", "a\n{}\nb", "see {}."])
@cases("kind", KEYS)
def test_every_key_without_a_shape_is_found_by_its_randomness(kind: str, around: str) -> None:
    assert RANDOM in codes(around.format(KEYS[kind]))


@pytest.mark.parametrize("number", [4111111111111111, 4111111111111111.0, 2223000048400011])
def test_a_card_number_is_found_that_is_written_as_a_number(number: float) -> None:
    assert codes(number, "/tooling_layer/permissions/2/arg_constraints/amount_inr/max") == {NUMBER}


@pytest.mark.parametrize("note", ["plain", "caf\u00e9", "two\nlines"])
def test_a_field_that_is_named_for_a_secret_gives_one_away(note: str) -> None:
    params = {"api_key": "Zx81kLm2Qw", "token": {"var": "intent"}, "note": note}
    step = {"id": "a", "tool": "adp_orders.lookup", "params": params}
    template = {
        "template_id": "t",
        "intent": "support.refund",
        "decision_key": "support.refund.execute",
        "steps": [step],
    }
    findings = judge_pack(changed("/task_layer", {"task_templates": [template]}), ENVIRONMENT).findings
    at = "/task_layer/task_templates/0/steps/0/params/api_key"
    assert [finding.at for finding in findings if finding.code == SECRET] == [at]


PHONE, DO = "telephone_number_present", "/tone_and_comms/do/0"


def test_the_telephone_number_of_a_person_is_warned_of_where_it_stands() -> None:
    report = judge_pack(changed(DO, "ask Ann at +91 98765 43210"), ENVIRONMENT)
    assert [(finding.at, finding.severity) for finding in report.findings if finding.code == PHONE] == [(DO, "warning")]
    assert report.passed
    assert not any("98765" in f"{finding.cause}{finding.cure}" for finding in report.findings)


def test_many_telephone_numbers_are_told_as_a_list_and_not_one_by_one() -> None:
    many = "+91 98765 43210, +91 98765 43211 or +91 98765 43212"
    reported = {finding.code for finding in judge_pack(changed(DO, many), ENVIRONMENT).findings}
    assert PEOPLE in reported
    assert PHONE not in reported


def test_the_name_of_a_field_tells_what_its_number_is() -> None:
    step = {"id": "a", "tool": "adp_orders.lookup", "params": {"bsn": "111222333", "order": "111222333"}}
    template = {"template_id": "t", "intent": "support.refund", "decision_key": "support.refund.execute"}
    pack = changed("/task_layer", {"task_templates": [{**template, "steps": [step]}]})
    findings = judge_pack(pack, ENVIRONMENT, identify=official_number).findings
    at = "/task_layer/task_templates/0/steps/0/params/bsn"
    assert [finding.at for finding in findings if finding.code == NUMBER] == [at]


PROSE = [at for at, value in leaves(EXAMPLE) if isinstance(value, str) and " " in value]


@given(st.sampled_from(PROSE), st.sampled_from([*SECRETS.values(), *KEYS.values()]), st.data())
def test_a_secret_is_found_wherever_it_is_put_into_any_sentence_of_a_pack(
    at: str, secret: str, data: st.DataObject
) -> None:
    text = next(value for place, value in leaves(EXAMPLE) if place == at)
    words = text.split(" ")
    words.insert(data.draw(st.integers(0, len(words))), secret)
    report = judge_pack(changed(at, " ".join(words)), ENVIRONMENT)
    findings = [finding for finding in report.findings if finding.code in {SECRET, RANDOM}]
    assert {finding.at for finding in findings} == {at}
    assert not any(secret in f"{finding.cause}{finding.cure}" for finding in report.findings)
