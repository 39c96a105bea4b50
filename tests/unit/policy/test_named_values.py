"""Values beside their names: flags, elements, pairs and plurals are masked, and text that only speaks of them stays."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.canonical import Json
from contextplane.policy.redaction.redactor import Redactor
from contextplane.policy.redaction.rules import REDACTIONS
from tests.support.cases import cases

ALL = Redactor(REDACTIONS)
SECRETS = Redactor()

MASKED = [
    # flags of commands
    ("mysql --password x db", "mysql --password [redacted:password] db"),
    ("mysql --password=x db", "mysql --password=[redacted:password] db"),
    ('mysql --password "a b" db', 'mysql --password "[redacted:password]" db'),
    ("mysql --db-password 'it''s'", "mysql --db-password '[redacted:password]''s'"),
    ("run --api-key k1, then stop.", "run --api-key [redacted:api_key], then stop."),
    ("connect -Password blue -User bob", "connect -Password [redacted:password] -User bob"),
    ("args ['--token', 'abc', '-v']", "args ['--token', '[redacted:access_token]', '-v']"),
    ('say "run --password \\"a b\\" now"', 'say "run --password \\"[redacted:password]\\" now"'),
    # elements and attributes of XML
    ("<password>x</password>", "<password>[redacted:password]</password>"),
    ("<a><wsse:Password Type='t'> x y </wsse:Password></a>", None),
    ("<password><![CDATA[x<y]]></password>", "<password><![CDATA[[redacted:password]]]></password>"),
    ("<passwords><item>x</item></passwords>", "<passwords>[redacted:password]</passwords>"),
    ('<user password="x" id="7"/>', '<user password="[redacted:password]" id="7"/>'),
    ("<add key='password' value='x'/>", "<add key='password' value='[redacted:password]'/>"),
    ('<input type="password" value="x">', '<input type="password" value="[redacted:password]">'),
    ('<entry key="db.password">x</entry>', '<entry key="db.password">[redacted:password]</entry>'),
    # pairs
    ('{"key": "password", "value": "x"}', '{"key": "password", "value": "[redacted:password]"}'),
    ('{"value": "x", "name": "db_password"}', '{"value": "[redacted:password]", "name": "db_password"}'),
    ('{"Key": "otp", "Value": 123456, "n": 1}', '{"Key": "otp", "Value": "[redacted:password]", "n": 1}'),
    ('{"key": "jwt", "value": {"stringValue": "x"}}', '{"key": "jwt", "value": "[redacted:access_token]"}'),
    (
        '{"type": "password", "id": "7", "value": "x"}',
        '{"type": "password", "id": "7", "value": "[redacted:password]"}',
    ),
    ('log {"key": "otp", "n": 1, "value": "x"', 'log {"key": "otp", "n": 1, "value": "[redacted:password]"'),
    ("- name: DB_PASSWORD\n  value: x y\n", "- name: DB_PASSWORD\n  value: [redacted:password]\n"),
    # plurals
    ('{"passwords": ["x", "y"]}', '{"passwords": "[redacted:password]"}'),
    ('{"secrets": {"a": "x"}}', '{"secrets": "[redacted:api_key]"}'),
    (
        '{"api_keys": "x", "accessTokens": ["y"]}',
        '{"api_keys": "[redacted:api_key]", "accessTokens": "[redacted:access_token]"}',
    ),
    ("passwords: hunter2, tr0ub4dor", "passwords: [redacted:password], tr0ub4dor"),
    # commands as lists
    ('["mysql", "--password", "x", "db"]', '["mysql", "--password", "[redacted:password]", "db"]'),
    ('["mysql", "--password=x"]', '["mysql", "--password=[redacted:password]"]'),
]

PERSONAL = [
    ("credit_card", "4111\t1111\t1111\t1111"),
    ("credit_card", "4111\n1111\n1111\n1111"),
    ("credit_card", "4111/1111/1111/1111"),
    ("credit_card", "4111_1111_1111_1111"),
    ("credit_card", "4111\r\n1111\r\n1111\r\n1111"),
    ("credit_card", "2026 4111 1111 1111 1111"),
    ("credit_card", "4111\n1111\n1111\n1111\n2026"),
    ("email", "<email>jane at example</email>"),
    ("ssn", '{"field": "ssn", "value": "none of yours"}'),
    ("date_of_birth", '{"label": "Date of birth", "value": "May 1990"}'),
    ("name", '{"label": "Name", "value": "jane"}'),
    ("name", "<customer_name>jane</customer_name>"),
    ("iban", '{"ibans": ["x"]}'),
    ("passport", "<entry key='passport'>X</entry>"),
    ("phone", "send --phone 5551"),
]

STAYS = [
    "The password policy, a password reset and the passwords page; secrets management; token budgets.",
    "Use the --password flag. --password is required; --token and --api-key are optional.",
    "login --password $DB_PASSWORD --token ${TOKEN} --api-key $(cat key) --secret %SECRET% --pwd {{ pwd }}",
    "docker run --name web --address web --password-stdin --max-tokens 400 --tokens 12 -- password",
    "mysql -u root -p <password> and then <token>, as in <password>",
    "<p>The password is required.</p><name/><input type='password' name='q'><password></password>",
    "<product><label>Blue</label><token_count>12</token_count><value>7</value></product>",
    '{"passwords": 3, "secrets": 0, "tokens": {"input": 5, "output": 7}, "cells": [1, 2], "authorizations": ["a"]}',
    '{"key": "colour", "value": "blue"}, {"name": "password", "type": "string"}',
    '{"name": "How often did users reset their password", "value": 12}',
    '{"value": "x", "parts": [{"name": "size"}]}',
    '{"passwords": [], "api_keys": null, "key": "otp", "value": null}',
    '["the", "--verbose", "x", "--password", "--token"]',
    "name: colour\nvalue: blue",
    "4500\n4600\n4700\n4804\n4900\n5000\n5100\n5200\n5300\n5400",
    "4111\t1111\t1111\t1111\t4111\t1111\t1111\t1111",
]


@cases(("text", "expected"), MASKED)
def test_a_value_beside_its_name_is_masked_in_every_notation(text: str, expected: str | None) -> None:
    masked = SECRETS.mask_text(text)
    assert masked.text == (expected or text.replace("x y", "[redacted:password]"))
    assert {item.way for item in masked.redactions} <= {"field", "shape"}
    assert SECRETS.mask_text(masked.text) == (masked.text, ())
    assert not SECRETS.is_clear(text)
    assert not SECRETS.is_clear(f"first 'line\n{text}\nlast")


@cases(("rule", "text"), PERSONAL)
def test_personal_data_is_masked_so_where_the_rule_is_listed(rule: str, text: str) -> None:
    assert f"[redacted:{rule}]" in Redactor([rule]).mask_text(text).text
    assert not Redactor([rule]).is_clear(text)
    assert SECRETS.mask_text(text).text == text


@cases("text", STAYS)
def test_text_that_speaks_of_fields_stays(text: str) -> None:
    assert Redactor(REDACTIONS - {"name"}).mask_text(text) == (text, ())


def test_a_flag_or_an_attribute_is_no_field_of_a_weak_rule() -> None:
    assert ALL.mask_text('docker --name web <a name="x">').redactions == ()
    assert ALL.mask_text('["--name", "web"]').redactions == ()


def test_a_label_names_only_the_values_of_its_own_object() -> None:
    text = '[{"key": "otp", "value": "1a"}, {"key": "size", "value": "2b"}, {"a": {"key": "otp"}, "value": "3c"}]'
    assert ALL.mask_text(text).text == text.replace("1a", "[redacted:password]")
    nested = '{"key": "otp", "value": {"email": "a@x.com", "n": 1}, "email": "b@x.com"}'
    masked = ALL.mask_text(nested)
    assert masked.text == '{"key": "otp", "value": "[redacted:password]", "email": "[redacted:email]"}'
    assert [item.place for item in masked.redactions] == ["/value", "/email"]


parts = st.sampled_from(
    [
        *(text for text, _ in MASKED),
        *(text for _, text in PERSONAL),
        *STAYS,
        *(
            "--password ",
            "-token=",
            "<password>",
            "</password>",
            '<a password="',
            ">",
            '"key": "otp", ',
            '"value": ',
            '"',
        ),
        *("'", "\\", "\n", " ", "name: otp\n", "value: ", "x", "[redacted:password]", "{", "}", "4111_", "1111\t"),
    ]
)
texts = st.lists(parts, max_size=8).map("".join)
names = st.sampled_from(["key", "name", "value", "values", "passwords", "type", "n", "email", "otp"])
values = st.recursive(
    st.none() | st.integers(0, 10**6) | texts | st.sampled_from(["password", "otp", "--password", "email"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=10,
)


@given(texts)
def test_masking_twice_changes_nothing(text: str) -> None:
    masked = ALL.mask_text(text)
    assert ALL.mask_text(masked.text) == (masked.text, ())
    if masked.redactions:
        assert not ALL.is_clear(text)
        assert not ALL.is_clear(f"first\n{text}\nlast")


@given(values)
def test_values_of_json_stay_json(value: Json) -> None:
    masked = ALL.mask_value(value)
    assert ALL.mask_value(masked.value).redactions == ()
    if isinstance(value, dict | list):
        assert json.loads(ALL.mask_text(json.dumps(value, indent=1)).text) == masked.value


@pytest.mark.parametrize(
    "unit",
    [
        *("--password ", "--a", "-", "<password>", "</password>", "<a ", '<a b="', "<password>x</password>", "<a>"),
        *('{"key":"otp","value":"x"},', '"key":"otp","value":"x",', "name: otp\n", "name: otp\nvalue: ", "4111\n"),
        *("4111_1111_", '["--password",', "--password '", '<a key="otp" value="x"', "key:", "type=", "value"),
    ],
)
def test_the_cost_is_linear(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    ALL.mask_text(text)
    assert time.process_time() - start < 8
