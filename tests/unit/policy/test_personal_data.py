"""Shapes of personal data, and runs as random as keys: what is found, and what is left alone."""

import base64
import re

from hypothesis import given
from hypothesis import strategies as st

from contextplane.policy.detect.personal_data import (
    CARD,
    OFFICIAL,
    emails,
    may_hold_number,
    official_numbers,
    persons_phone_numbers,
)
from contextplane.policy.detect.secrets import holds_random_run
from tests.support.cases import cases


@given(st.from_regex(CARD()) | st.from_regex(OFFICIAL()), st.text(max_size=20))
def test_the_fast_question_misses_no_number(number: str, around: str) -> None:
    text = f"{around} {number} {around}"
    if CARD().search(text) or OFFICIAL().search(text):
        assert may_hold_number(text.encode())


def kinds(text: str) -> list[str | None]:
    return list(official_numbers(text, lambda number: "asked" if number else None))


@cases(
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


@cases(
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


@cases("text", ["2341 2341 2346", "ABCPE1234F", "536-22-8726", "DE89 3704 0044 0532 0130 00"])
def test_other_numbers_are_asked_about_and_when_nobody_knows_it_is_said(text: str) -> None:
    assert kinds(f"x {text}.") == ["asked"]
    assert list(official_numbers(text, None)) == [None]


def test_addresses_are_counted_once_each() -> None:
    assert emails("a@x.example, b@x.example; a@x.example and not@an-address") == {"a@x.example", "b@x.example"}


@cases(
    ("text", "digits"),
    [
        ("+91 98765 43210", "919876543210"),
        ("+919876543210", "919876543210"),
        ("call +1 (415) 867-5309 now", "14158675309"),
        ("tel:+44-7911-123456", "447911123456"),
        ("+49 30 1234567", "49301234567"),
        ("+33 1 23 45 67 89", "33123456789"),
        ("+351 912 345 678", "351912345678"),
        ("+44 (0)20 7123 4567", "4402071234567"),
        ("+7 912 345 67 89", "79123456789"),
    ],
)
def test_a_telephone_number_in_international_form_is_found(text: str, digits: str) -> None:
    assert persons_phone_numbers(text) == {digits}
    assert may_hold_number(text.encode())


@cases(
    "text",
    [
        *(
            "+1 800 123 4567",
            "+18005550199",
            "+44 800 123 4567",
            "+91 1800 123 4567",
            "+800 1234 5678",
            "+61 1300 123 456",
        ),
        *("+1 212 555 0123", "+44 7700 900123", "+44 20 7946 0123"),
        *("98765 43210", "0091 98765 43210", "+05:30", "GMT+10", "+12.5%", "1.0.0+20260515123456", "+1 234 567 890"),
        *("+50 000 000 000", "ttl +3600000000", "+0 12345 67890", "+1234567890123456789", "x+919876543210"),
    ],
)
def test_a_number_that_is_free_of_charge_made_up_or_no_telephone_is_left_alone(text: str) -> None:
    assert persons_phone_numbers(text) == frozenset()


RANDOM_BYTES = st.binary(min_size=24, max_size=48).filter(lambda data: len(set(data)) > 16)


@given(RANDOM_BYTES)
def test_hexadecimal_of_random_bytes_is_found(data: bytes) -> None:
    text = data.hex()
    if len(re.findall(r"(?<=[a-f])(?=[0-9])|(?<=[0-9])(?=[a-f])", text)) >= len(text) // 8:
        assert holds_random_run(f"use {text} here")


@cases("seed", range(40))
def test_most_keys_are_found_however_they_are_written(seed: int) -> None:
    state = bytes((seed * 37 + n * n * 101 + (n * seed) % 251 * 13) % 256 for n in range(30))
    assert holds_random_run(base64.b32encode(state).decode())
    assert holds_random_run(state.hex())


@cases(
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
