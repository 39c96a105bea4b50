"""What a pack says of its runtime and of the defaults of its environment: there are such things."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.iso_codes import currencies, timezones
from contextplane.errors import ContextPlaneError
from contextplane.model.context_pack import ContextPack
from contextplane.trust.compatibility import RuntimeCapabilities, check_compatibility
from tests.support.cases import cases
from tests.unit.authoring.packs import changed, findings

DEFAULTS = "/pack_meta/environment_defaults"
REQUIRES = "/contract_meta/compatibility/requires"
HERE = RuntimeCapabilities(ontologies=("ont.support@1.0.0",))


def codes_and_cures(at: str, value: object) -> list[tuple[str, str, str]]:
    return [
        (finding.code, finding.severity, finding.cure) for finding in findings(changed(at, value)) if finding.at == at
    ]


VERSIONS = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)).map(
    lambda numbers: ".".join(map(str, numbers))
)
RANGES = st.builds("".join, st.tuples(st.sampled_from([">=", "<", "^", "~", "=", ">", "<="]), VERSIONS))


@given(st.lists(RANGES, min_size=1, max_size=2).map(" || ".join))
def test_a_range_is_refused_by_lint_exactly_when_this_runtime_would_refuse_the_pack(text: str) -> None:
    at = f"{REQUIRES}/runtime"
    pack = changed(at, text)
    try:
        check_compatibility(msgspec.convert(pack, ContextPack), HERE)
        refused = False
    except ContextPlaneError:
        refused = True
    errors = [finding.code for finding in findings(pack) if finding.severity == "error"]
    assert bool(errors) is refused
    assert set(errors) <= {"runtime_out_of_range", "compatibility_range_invalid"}


@given(st.sampled_from(["gpu", "ont.support", "runtimes", "Runtime"]))
def test_what_no_runtime_knows_is_refused_by_lint_and_by_the_runtime(name: str) -> None:
    at = f"{REQUIRES}/{name}"
    assert [code for code, _, _ in codes_and_cures(at, ">=1.0.0")] == ["compatibility_unknown"]
    with pytest.raises(ContextPlaneError):
        check_compatibility(msgspec.convert(changed(at, ">=1.0.0"), ContextPack), HERE)


@cases(
    "zone", ["UTC", "Etc/GMT+5", "Asia/Kolkata", "Asia/Calcutta", "America/Argentina/Buenos_Aires", "America/Coyhaique"]
)
def test_a_timezone_of_the_list_is_known(zone: str) -> None:
    assert codes_and_cures(f"{DEFAULTS}/timezone", zone) == []


@pytest.mark.parametrize(
    ("zone", "meant"),
    [("Asia/Calcuta", "Asia/Calcutta"), ("Europe/Berlinn", "Europe/Berlin"), ("America/NewYork", "America/New_York")],
)
def test_a_misspelled_timezone_is_warned_of_with_the_one_that_was_meant(zone: str, meant: str) -> None:
    assert codes_and_cures(f"{DEFAULTS}/timezone", zone) == [
        ("environment_default_unknown", "warning", f"did you mean {meant}?"),
    ]


@cases("zone", ["IST", "GMT+5", "localtime", "posix/UTC", "Mars/Olympus"])
def test_what_is_no_timezone_of_iana_is_warned_of(zone: str) -> None:
    assert [code for code, _, _ in codes_and_cures(f"{DEFAULTS}/timezone", zone)] == ["environment_default_unknown"]


def test_the_lists_are_whole_and_every_name_has_the_form_of_its_field() -> None:
    assert len(timezones()) > 590
    assert all(
        re.fullmatch(r"[A-Z][A-Za-z0-9_+-]{0,31}(/[A-Z][A-Za-z0-9_+-]{0,31}){0,2}", timezone)
        for timezone in timezones()
    )
    assert len(currencies()) > 160
    assert all(re.fullmatch("[A-Z]{3}", currency) for currency in currencies())


@cases("currency", ["EUE", "INT", "BTC", "ABC"])
def test_what_is_no_currency_is_warned_of(currency: str) -> None:
    assert [(code, severity) for code, severity, _ in codes_and_cures(f"{DEFAULTS}/currency", currency)] == [
        ("environment_default_unknown", "warning"),
    ]


@cases(
    "language",
    [
        *("en", "en-IN", "hi", "zh-Hant-TW", "zh-cmn-Hans-CN", "sl-rozaj-biske", "de-CH-1901", "es-419", "kok"),
        *("en-u-ca-gregory", "de-DE-u-co-phonebk-x-ours", "en-x-a"),
    ],
)
def test_a_language_of_bcp_47_has_the_form(language: str) -> None:
    assert codes_and_cures(f"{DEFAULTS}/language", language) == []


@cases(
    "language",
    [
        "EN",
        "english",
        "en_IN",
        "en-",
        "-en",
        "en-IND",
        "en-IN-US",
        "en-12",
        "en-i",
        "en-x",
        "en-u",
        "x-ours",
        "en IN",
        "",
    ],
)
def test_what_is_no_language_of_bcp_47_is_refused(language: str) -> None:
    assert [(code, severity) for code, severity, _ in codes_and_cures(f"{DEFAULTS}/language", language)] == [
        ("schema_value_wrong", "error"),
    ]


@cases("region", ["ap-south-1", "IN", "westeurope", "eu"])
def test_a_region_is_a_country_or_a_place_of_a_provider(region: str) -> None:
    assert codes_and_cures(f"{DEFAULTS}/region", region) == []


RULE = "/policy_layer/policy_bundles/0/policy_dsl/rules/0"


@cases(
    ("then", "otherwise", "warned"),
    [
        ({"allow": True}, {"allow": True}, True),
        ({"allow": True, "reason": "Yes."}, {"allow": True, "reason": "Also."}, True),
        ({"allow": False}, {"allow": False, "reason": "Never."}, True),
        ({"requires": ["order_lookup", "policy_eval"]}, {"requires": ["policy_eval", "order_lookup"]}, True),
        ({"allow": True}, {"allow": False}, False),
        ({"allow": True}, {}, False),
        ({"allow": True, "requires": ["order_lookup"]}, {"allow": True}, False),
        ({"allow": True, "arg_constraints": {"amount": {"max": 5}}}, {"allow": True}, False),
        (
            {"allow": True, "arg_constraints": {"a": {"max": 5}}},
            {"allow": True, "arg_constraints": {"a": {"max": 6}}},
            False,
        ),
    ],
)
def test_a_rule_that_does_the_same_in_either_branch_is_warned_of(
    then: dict[str, Any], otherwise: dict[str, Any], *, warned: bool
) -> None:
    rule = {"rule_id": "R", "applies_to": {"intent": "support.refund"}, "if": {"==": [{"var": "request.context.x"}, 1]}}
    pack = changed(RULE, {**rule, "then": then, "else": otherwise, "rationale": "Because."})
    warnings = [(finding.at, finding.severity) for finding in findings(pack) if finding.code == "rule_indifferent"]
    assert warnings == ([(f"{RULE}/else", "warning")] if warned else [])
