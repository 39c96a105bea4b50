"""Shapes of personal data, and runs as random as keys: what is found, and what is left alone."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.policy.personal_data import CARD, OFFICIAL, emails, may_hold_number, official_numbers
from contextplane.policy.randomness import holds_random_run


@given(st.from_regex(CARD()) | st.from_regex(OFFICIAL()), st.text(max_size=20))
def test_the_fast_question_misses_no_number(number: str, around: str) -> None:
    text = f"{around} {number} {around}"
    if CARD().search(text) or OFFICIAL().search(text):
        assert may_hold_number(text)


def kinds(text: str) -> list[str | None]:
    return list(official_numbers(text, lambda one: "asked" if one else None))


@pytest.mark.parametrize(
    "card",
    [
        *("4111111111111111", "4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005", "3782 822463 10005"),
        *("6011111111111117", "4222222222222", "3056 930902 5904"),
    ],
)
def test_a_card_number_is_told_by_its_check_digit(card: str) -> None:
    assert "payment card number" in kinds(f"charge {card}, then stop")
    wrong = card[:-1] + str((int(card[-1]) + 1) % 10)
    assert "payment card number" not in kinds(f"charge {wrong}, then stop")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2026-05-09T00:00:00Z",
            "version 1.0.0",
            "1800 123 4567",
            "INR 50000",
            "POLICY_RETURNS_V4",
            "0000 0000 0000 0000",
        ),
        *("kg:order:ord_881#snapshot_kg_2026_05_03_T0930", "room 12345678", "4111x111111111111", "ABCDE12345"),
    ],
)
def test_dates_amounts_and_names_are_no_personal_data(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize("text", ["2341 2341 2346", "ABCPE1234F", "536-22-8726", "DE89 3704 0044 0532 0130 00"])
def test_other_numbers_are_asked_about_and_when_nobody_knows_it_is_said(text: str) -> None:
    assert kinds(f"x {text}.") == ["asked"]
    assert list(official_numbers(text, None)) == [None]


def test_addresses_are_counted_once_each() -> None:
    assert emails("a@x.example, b@x.example; a@x.example and not@an-address") == {"a@x.example", "b@x.example"}


RANDOM_BYTES = st.binary(min_size=24, max_size=48).filter(lambda data: len(set(data)) > 16)


@given(RANDOM_BYTES)
def test_hexadecimal_of_random_bytes_is_found(data: bytes) -> None:
    text = data.hex()
    if len(re.findall(r"(?<=[a-f])(?=[0-9])|(?<=[0-9])(?=[a-f])", text)) >= len(text) // 8:
        assert holds_random_run(f"use {text} here")


@pytest.mark.parametrize("seed", range(40))
def test_most_keys_are_found_however_they_are_written(seed: int) -> None:
    state = bytes((seed * 37 + n * n * 101 + (n * seed) % 251 * 13) % 256 for n in range(30))
    assert holds_random_run(base64.b32encode(state).decode())
    assert holds_random_run(state.hex())


@pytest.mark.parametrize(
    "text",
    [
        *(
            "R_HIGH_VALUE_REQUIRES_APPROVAL_V2_2026",
            "OrderBelongsToCustomerRelationV12",
            "adp_sap_s4hana_mm_po_v2_eu_01",
        ),
        *("snapshot_kg_2026_05_03_T0930_eu_west", "internal://orders-staging-eu-west-1-replica-02"),
        *("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "sha256:" + "ab12" * 16, "kb_eu1_p2p_b2b_b2c_o2o_x12_y34"),
        *("schema://decision.support.refund.execute.inputs.v1", "0" * 40, "a" * 40, "1234567890" * 4),
    ],
)
def test_a_name_a_digest_and_a_uuid_are_not_random(text: str) -> None:
    assert not holds_random_run(f"see {text}, please")
