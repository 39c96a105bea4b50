"""The redactor: every rule masks what it names however it is spelled, and leaves all other text as it is."""

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.canonical import Json
from contextplane.policy.redaction.redactor import Redaction, Redactor
from contextplane.policy.redaction.rules import ALWAYS_ACTIVE, REDACTIONS, RULES
from contextplane.policy.redaction.schema_marks import SchemaMarks
from tests.support.cases import cases

ALL = Redactor(REDACTIONS)

# In pieces, so that no scanner takes this file for a leak.
KEY = "sk-" + "a1B2c3D4" * 4
TOKEN = "ghp_" + "a1" * 18
BLOCK = f"-----BEGIN RSA {'PRIVATE'} KEY-----\nMIIEpAIBAAKCAQEA7bq8\nq8Zt==\n-----END RSA {'PRIVATE'} KEY-----"

BY_SHAPE = {
    "pan": ["ABCPE1234F", "my PAN: abcpe1234f"],
    "aadhaar": ["2345 6789 0124", "2345-6789-0124", "234567890124", "aadhaar no. 2345.6789.0124"],
    "ssn": ["123-45-6789", "SSN 123456789", "ssn: 123 45 6789", "NI number QQ 12 34 56 C".replace("QQ", "AB")],
    "passport": ["passport X1234567", "Passport no.: 123456789", "passport_number=AB1234567"],
    "driving_licence": ["driving licence MORGA657054SM9IJ", "driver's license: D1234567", "DL MH12 20110012345"],
    "tax_id": ["529.982.247-25", "tax id 12-3456789", "GSTIN 27AAPFU0939F1ZV", "VAT number DE123456789"],
    "credit_card": [
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111111111111111",
        "3782 822463 10005",
        "5555.5555.5555.4444",
        "6011000990139424",
        "\uff14\uff11\uff11\uff11 \uff11\uff11\uff11\uff11 \uff11\uff11\uff11\uff11 \uff11\uff11\uff11\uff11",
        "\u0664\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661",
        "4111\u00a01111\u20111111\u20131111",
        "4111\u200b1111\u200b1111\u200b1111",
        "4\u202e111111111111111\u202c",
    ],
    "cvv": ["cvv 123", "CVC: 4321", "security code is 987"],
    "iban": [
        "DE89 3704 0044 0532 0130 00",
        "DE89370400440532013000",
        "de89370400440532013000",
        "GB29 NWBK 6016 1331 9268 19",
        "NL91ABNA0417164300",
        "NO93-8601-1117-947",
    ],
    "bank_account": [
        "account number 12345678",
        "acct no: 0012345678",
        "sort code 12-34-56",
        "routing number 021000021",
    ],
    "upi_id": ["jane.doe@okaxis", "9876543210@ybl"],
    "name": ["Mr. John Smith", "my name is Jane Doe", "Name: Jane Doe"],
    "email": [
        "jane@example.com",
        "jane.doe+tag@mail.example.co.uk",
        "J\u00fcrgen@m\u00fcller.de",
        "jane\uff20example\uff0ecom",
        "ja\u200dne@exam\u00adple.com",
    ],
    "phone": [
        "+1 202-555-0143",
        "+44 20 7946 0958",
        "+919876543210",
        "(202) 555-0143",
        "202.555.0143",
        "call me on 9876543210",
        "0044 20 7946 0958",
        "06 12 34 56 78",
        "98765 43210",
        "\uff0b\uff11 202\u2011555\u20110143",
    ],
    "address": ["12 Main Street", "221B Baker Street, London", "Hauptstra\u00dfe 12", "address: Flat 5, Rose Villa"],
    "date_of_birth": ["DOB: 1990-05-01", "born on 12 May 1990", "date of birth 01/05/1990", "birthday is May 1, 1990"],
    "ip_address": ["192.168.10.20", "2001:db8::8a2e:370:7334", "fe80::1ff:fe23:4567:890a"],
    "password": [
        "password: hunter2",
        "my password is tr0ub4dor!",
        'pwd="c0rrect horse 9"',
        "https://bob:s3cr3t@host/x",
    ],
    "api_key": [KEY, "AKIA" + "A1" * 8, "api_key=9f8e7d6c5b4a39", "sk_\u200blive_" + "a1" * 12],
    "access_token": [TOKEN, "Authorization: Bearer abc123DEF456ghi", "token: 9f8e7d6c5b4a39f1"],
    "private_key": [BLOCK, BLOCK.replace("\n", "\u200b\n")],
}
SPELLED = [(rule, text) for rule, texts in BY_SHAPE.items() for text in texts]

ORDINARY = [
    "Refund order ord_881 for INR 4200.",
    "Order 402-1234567-7654321, invoice INV-2026-000123, ticket #987654321, SKU 00012345.",
    "order 234567890124 and order_id: 234567890124, tracking number 9876543210, ORD-234567890124",
    "order number 9876543210 was shipped; call about order 9876543210",
    "550e8400-e29b-41d4-a716-446655440000 and 12345678-1234-1234-1234-234567890124",
    "sha256:" + "0123456789abcdef" * 4 + " and 9b74c9897bac770ffc029102a200c5de and deadbeef",
    "at 2026-05-09T12:30:45Z, 2026-05-09 12:30:45.123+05:30, 12:30:45, 1746793845, 1746793845123, 1746793845123456789",
    "1,234,567.89 EUR, $12,345.67, INR 42,00,000, 0.4111111111111111, -12345.6789, 1e10, 99.9 %, +5,000,000",
    "semver 1.2.3, v10.0.0, 1.2.3-rc.1, >=1.0.0 <2.0.0, ctxpack.support@1.0.0, lodash@4.17.21, version 1.2.3.4",
    "git@github.com:org/repo.git, @scope/package, user@host, a@b",
    "kg:order:ord_881#snapshot_kg_2026_05_03_T0930 tool:adp_orders.lookup:tc_12 mem:preference:cus_77:refund",
    "The password is required. Reset the token when it has expired; the secret is safe. Our key is customer service.",
    "The passport office, a driving licence, the tax id and the bank account are named here, and nothing of them.",
    "She was born in May. The security code changes. 12 Main courses, 5 Rose bushes.",
    "parts[1::2], 56243694.08689952, old@2.yaml, id 505872366699074",
    "std::vector<int>, a::b, 10:20:30, key: value, C:\\Users\\x",
    "x = 4111111111111112, 1234567890123456, 2026050912304567",
    "retry 3 of 10 after 250 ms; 200 OK; exit 137; port 8080; 640x480",
    '{"order_id": 234567890124, "total": 4200.5, "sku": "A-100", "items": [{"qty": 2, "product_name": "Blue shirt"}]}',
    '{"max_tokens": 400, "token_count": 12, "email_verified": true, "next_page_token": "p2", "ip": null, "name": ""}',
    "Mr. and Mrs., the Dr. said no; St. Moritz; the name is optional",
    "\u4eca\u65e5\u306f\u826f\u3044\u5929\u6c17\u3067\u3059\u30022026\u5e745\u67089\u65e5",
]


@cases(("rule", "text"), SPELLED)
def test_each_rule_masks_its_shapes_wherever_they_stand(rule: str, text: str) -> None:
    redactor = Redactor([rule])
    for before, after in (("", ""), ("Please see ", ", thanks"), ("first line\n", "\nlast line"), ("(", ")")):
        if before and text.startswith(("Name:", "address:")) and not before.endswith("\n"):
            continue  # it is masked as a line only
        masked = redactor.mask_text(f"{before}{text}{after}")
        assert f"[redacted:{rule}]" in masked.text
        assert masked.text.startswith(before)
        assert masked.text.endswith(after)
        assert {item.rule for item in masked.redactions} == {rule}
        words = [word for word in text.split() if any(map(str.isdigit, word))]
        secret = max(words, default=text.rsplit(maxsplit=1)[-1], key=len)
        assert secret not in masked.text
        assert not redactor.is_clear(f"{before}{text}{after}")


def test_every_rule_has_a_shape_that_is_tested() -> None:
    assert BY_SHAPE.keys() == REDACTIONS
    assert len(RULES) == len(REDACTIONS) == 21


@cases("text", ORDINARY)
def test_ordinary_text_stays_byte_for_byte(text: str) -> None:
    assert ALL.mask_text(text) == (text, ())


@cases(("rule", "text"), [pair for pair in SPELLED if pair[0] not in ALWAYS_ACTIVE])
def test_personal_data_is_masked_only_by_a_rule_that_the_pack_names(rule: str, text: str) -> None:
    assert Redactor().mask_text(text).text == text
    others = {"pan", "credit_card", "iban", "bank_account", "phone", "tax_id", "upi_id"}
    assert Redactor(REDACTIONS - {rule} - others).mask_text(text).text == text


@cases(("rule", "text"), [pair for pair in SPELLED if pair[0] in ALWAYS_ACTIVE])
def test_secrets_are_always_masked(rule: str, text: str) -> None:
    assert f"[redacted:{rule}]" in Redactor().mask_text(text).text


def test_an_iban_is_a_bank_account_and_a_card_number_a_pan() -> None:
    assert Redactor(["bank_account"]).mask_text("DE89370400440532013000").text == "[redacted:bank_account]"
    assert Redactor(["pan"]).mask_text("4111111111111111").text == "[redacted:pan]"
    assert ALL.mask_text("DE89370400440532013000 4111111111111111").text == "[redacted:iban] [redacted:credit_card]"


def test_a_check_digit_decides() -> None:
    assert ALL.mask_text("DE88370400440532013000").text == "DE88370400440532013000"
    assert Redactor(["aadhaar"]).mask_text("2345 6789 0123").text == "2345 6789 0123"
    assert Redactor(["tax_id"]).mask_text("27AAPFU0939F1ZW").text == "27AAPFU0939F1ZW"


# --- fields ---


@cases(
    ("name", "rule"),
    [
        *(("password", "password"), ("userPassword", "password"), ("API-Key", "api_key"), ("x-api-key", "api_key")),
        *(("clientSecret", "api_key"), ("refresh_token", "access_token"), ("Authorization", "access_token")),
        *(("privateKey", "private_key"), ("dateOfBirth", "date_of_birth"), ("customer.email", "email")),
        *(
            ("billing_address", "address"),
            ("addressLine2", "address"),
            ("email_address", "email"),
            ("cardNumber", "credit_card"),
        ),
        *(("cardnumber", "credit_card"), ("CVV2", "cvv"), ("iban", "iban"), ("accountNumber", "bank_account")),
        *(
            ("firstName", "name"),
            ("customer_name", "name"),
            ("name", "name"),
            ("phone1", "phone"),
            ("mobile_no", "phone"),
        ),
        *(
            ("ssn", "ssn"),
            ("passportNo", "passport"),
            ("driversLicenseNumber", "driving_licence"),
            ("tax_id", "tax_id"),
        ),
        *(("pan", "pan"), ("aadhaar_number", "aadhaar"), ("upi_id", "upi_id"), ("client_ip", "ip_address")),
        *(("product_name", None), ("file_name", None), ("hostname", None), ("mac_address", None), ("max_tokens", None)),
        *(("email_verified", None), ("page_token", None), ("token_count", None), ("key_id", None), ("zip_file", None)),
        *(("order_id", None), ("company", None), ("", None), ("_", None)),
    ],
)
def test_a_member_is_masked_by_its_name(name: str, rule: str | None) -> None:
    masked = ALL.mask_text(json.dumps({name: "blue", "n": 1}))
    expected = "blue" if rule is None else f"[redacted:{rule}]"
    assert msgspec.json.decode(masked.text) == {name: expected, "n": 1}
    assert masked.redactions == (() if rule is None else (Redaction(rule, "field", f"/{name}"),))
    assert Redactor().field_rule(name) == (rule if rule in ALWAYS_ACTIVE else None)


def test_the_value_of_a_member_is_masked_whole_whatever_it_is() -> None:
    text = (
        '{ "address" : {"city": "X", "n": [1, {"a": "}"}]},\n "cvv": 123, "phone": ["a", "b"], "password": null, '
        '"x": 1.50}'
    )
    expected = (
        '{ "address" : "[redacted:address]",\n "cvv": "[redacted:cvv]", "phone": "[redacted:phone]", "password": null, '
        '"x": 1.50}'
    )
    masked = ALL.mask_text(text)
    assert masked.text == expected
    assert [item.place for item in masked.redactions] == ["/address", "/cvv", "/phone"]
    assert ALL.mask_text('{"email": "", "phone": [], "dob": false, "name": {}}').redactions == ()


def test_values_in_json_are_masked_by_shape_and_what_is_escaped_is_seen() -> None:
    text = '{"a": ["mail jane\\u0040example.com\\n", 4111111111111111], "pass\\u0077ord": "x", "b": "tab\\there"}'
    masked = ALL.mask_text(text)
    assert masked.text == (
        '{"a": ["mail [redacted:email]\\n", "[redacted:credit_card]"], "pass\\u0077ord": "[redacted:password]", '
        '"b": "tab\\there"}'
    )
    assert [(item.rule, item.way, item.place) for item in masked.redactions] == [
        ("email", "shape", "/a/0"),
        ("credit_card", "shape", "/a/1"),
        ("password", "field", "/password"),
    ]


@cases("text", ['{"a": "jane\\u0040example.com"}', '{"p\\u0061ssword": "x"}'])
def test_an_escape_in_json_hides_nothing(text: str) -> None:
    redactor = Redactor(["email"])
    assert not redactor.is_clear(text)
    assert "[redacted:" in redactor.mask_text(text).text


def test_json_inside_a_text_of_json_is_masked_too() -> None:
    inner = json.dumps({"name": "Jane", "n": 1})
    masked = ALL.mask_text(json.dumps({"body": inner}))
    assert json.loads(json.loads(masked.text)["body"]) == {"name": "[redacted:name]", "n": 1}


def test_names_of_members_are_masked_and_stay_apart() -> None:
    masked = ALL.mask_value({"a@x.com": 1, "b@x.com": 2, "c": 3})
    assert masked.value == {"[redacted:email]": 1, "[redacted:email] 2": 2, "c": 3}
    assert [item.place for item in masked.redactions] == ["/[redacted:email]", "/[redacted:email] 2"]


@cases(
    ("text", "expected"),
    [
        ('log {"name": "Jane", "cvv": 123} end', 'log {"name": "[redacted:name]", "cvv": "[redacted:cvv]"} end'),
        ("{'name': 'Jane'}", "{'name': '[redacted:name]'}"),
        ('{"name": "Jane", "dob": "1990', '{"name": "[redacted:name]", "dob": "[redacted:date_of_birth]'),
        ('{"name": "A"}\n{"name": "B"}', '{"name": "[redacted:name]"}\n{"name": "[redacted:name]"}'),
        ('say \\"name\\": \\"Jane\\" now', 'say \\"name\\": \\"[redacted:name]\\" now'),
    ],
)
def test_members_inside_other_text_are_masked(text: str, expected: str) -> None:
    assert ALL.mask_text(text).text == expected


def test_a_value_without_anything_to_mask_is_the_same_object() -> None:
    value: Json = {"refund_amount": 4200, "identity_verified": True}
    assert ALL.mask_value(value).value is value
    assert ALL.mask_member(["email"], "x").value == "[redacted:email]"
    assert ALL.mask_member(["order", "total"], 5).value == 5
    assert ALL.mask_member(["user", "address", "city"], "X").value == "[redacted:address]"


# --- schemas ---

SCHEMA = {
    "type": "object",
    "$defs": {"who": {"properties": {"code": {"x-redact": True}, "next": {"$ref": "#/$defs/who"}}}},
    "properties": {
        "customer": {"$ref": "#/$defs/who"},
        "notes": {"type": "array", "items": {"anyOf": [{"type": "string", "x-redact": "name"}, {"type": "null"}]}},
        "pair": {"prefixItems": [{}, {"x-redact": True}]},
        "flag": {"x-redact": True},
        "open": {"x-redact": False},
    },
    "patternProperties": {"^s_": {"x-redact": "tax_id"}},
    "additionalProperties": {"x-redact": "address"},
}


def test_marks_are_followed_through_references_alternatives_and_lists() -> None:
    marks = SchemaMarks.of([SCHEMA])
    value: Json = {
        "customer": {"code": 7, "next": {"code": {"a": 1}, "city": "X"}},
        "notes": ["a", None],
        "pair": [1, 2, 3],
        "flag": False,
        "open": "o",
        "s_1": "t",
        "other": ["x"],
    }
    masked = Redactor().mask_value(value, marks=marks)
    assert masked.value == {
        "customer": {"code": "[redacted:x-redact]", "next": {"code": "[redacted:x-redact]", "city": "X"}},
        "notes": ["[redacted:name]", None],
        "pair": [1, "[redacted:x-redact]", 3],
        "flag": "[redacted:x-redact]",
        "open": "o",
        "s_1": "[redacted:tax_id]",
        "other": "[redacted:address]",
    }
    assert {item.way for item in masked.redactions} == {"schema"}


def test_a_schema_without_marks_has_none_and_a_loop_ends() -> None:
    assert SchemaMarks.of([{"properties": {"x-redact": {"type": "string"}}}]) is None
    loop = SchemaMarks.of([{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a", "x-redact": True}}}])
    assert loop is not None
    assert loop.rule == "x-redact"


def test_text_where_marked_json_must_stand_is_masked_whole() -> None:
    marks = SchemaMarks.of([SCHEMA])
    assert ALL.mask_text("Jane has code 7", marks=marks, must_be_json=True).text == "[redacted:x-redact]"
    assert ALL.mask_text("[redacted:x-redact]", marks=marks, must_be_json=True).redactions == ()
    assert ALL.mask_text("Jane has code 7", marks=marks).text == "Jane has code 7"


# --- properties ---

words = st.sampled_from(
    [
        *(text for _, text in SPELLED),
        *ORDINARY,
        *("password", "ssn", ":", "=", " is ", "'", '"', "\\", "{", "}", "[", "]", "@", "cvv", "[redacted:email]"),
        *("[redacted:", "name", "4111", "1111", "-", "+", "\u200b", "\n", "token", "born on", "call", "12 Main"),
    ]
)
texts = st.lists(words | st.text(max_size=8), max_size=8).map("".join)
rules = st.sets(st.sampled_from(sorted(REDACTIONS)), max_size=6) | st.just(set(REDACTIONS))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["email", "name", "total", "cvv", "a@x.com", "address", "n"]) | texts, inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(texts, rules)
def test_after_masking_no_rule_finds_anything(text: str, active: set[str]) -> None:
    redactor = Redactor(active)
    masked = redactor.mask_text(text)
    assert redactor.mask_text(masked.text) == (masked.text, ())
    assert bool(masked.redactions) == (masked.text != text)


@given(values, rules)
def test_the_same_holds_for_values_of_json_which_stay_json(value: Json, active: set[str]) -> None:
    redactor = Redactor(active)
    masked = redactor.mask_value(value)
    assert redactor.mask_value(masked.value).redactions == ()
    text = json.dumps(value, indent=1)
    as_text = redactor.mask_text(text)
    assert redactor.mask_text(as_text.text) == (as_text.text, ())
    if isinstance(value, dict | list):
        assert json.loads(as_text.text) == masked.value


@given(texts, rules)
def test_text_that_is_clear_has_nothing_to_mask_alone_or_among_other_lines(text: str, active: set[str]) -> None:
    redactor = Redactor(active)
    if redactor.mask_text(text).redactions:
        assert not redactor.is_clear(text)
        assert not redactor.is_clear(f"first\n{text}\nlast")


@given(st.lists(st.sampled_from([*ORDINARY[:9], *(text for _, text in SPELLED)]), min_size=1, max_size=6))
def test_lines_without_anything_to_mask_stay_beside_others(lines: list[str]) -> None:
    masked = ALL.mask_text("\n\n".join(lines)).text.split("\n\n")
    for line in ORDINARY[:9]:
        assert masked.count(line) >= lines.count(line)


HIDING = list("\x00\x7f\u00ad\u200b\u200c\u200d\u200e\u202e\u2060\u2066\ufe0f\ufeff\U000e0041")


@pytest.mark.parametrize("character", HIDING, ids=lambda character: f"U+{ord(character):04X}")
def test_an_invisible_character_hides_nothing(character: str) -> None:
    for text in ("4111111111111111", "jane@example.com", KEY, "123-45-6789"):
        hidden = character.join(text)
        masked = ALL.mask_text(f"see {hidden} here").text
        assert masked.startswith("see [redacted:")
        assert masked.endswith("] here")


@cases(
    "unit",
    [
        *(
            "4",
            "41 ",
            "4-",
            "+1",
            "+1 2",
            "(2",
            "a",
            "a@",
            "@a.",
            "a.",
            "1.",
            "a:",
            ":",
            "::",
            "f:",
            "DE89 ",
            "password:",
        ),
        *(
            "token=",
            '"a":',
            "'a':\"",
            "{",
            "[",
            '{"a":',
            "[redacted:",
            "[redacted:name]",
            "Mr A ",
            "1 A ",
            "born ",
            "ssn ",
        ),
        *(
            "eyJ",
            "sk-",
            "xoxb-12345678901",
            BLOCK[:31],
            "\u200b",
            "4\u200b",
            "P<",
            "my name is A ",
            "://a:",
        ),
        *(
            "bearer a1",
            "account number 1",
            "call ",
            "\\",
            '\\"',
            "cpf ",
            "nhs 1",
            "dob 1-1-",
            "Name: A\n",
            "address: 1\n",
        ),
    ],
)
def test_the_cost_is_linear(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    ALL.mask_text(text)
    assert time.process_time() - start < 8


@cases(
    "name",
    [
        "pass\u200bword",
        "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44",
        "\u2060password\u2060",
        "x" * 300 + "_password",
    ],
)
def test_the_spelling_and_the_length_of_a_name_hide_no_field(name: str) -> None:
    assert ALL.mask_value({name: "hunter two"}).value == {name: "[redacted:password]"}
    content = json.dumps({name: "hunter two"}, ensure_ascii=False)
    assert "hunter two" not in ALL.mask_text(content).text
