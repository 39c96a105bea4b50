"""Numbers of persons of a few countries: with their check digits, and beside their names where digits say little."""

from hypothesis import given, settings
from hypothesis import strategies as st
from stdnum.br import cpf
from stdnum.gb import nhs
from stdnum.nl import bsn

from contextplane.policy.detect.personal_data import SHAPES, may_hold_number, national_numbers
from tests.support.cases import cases

CPF, NINO, NHS, BSN = "CPF of a taxpayer", "National Insurance number", "NHS number", "citizen service number"


def digits(count: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=count, max_size=count)


@given(digits(11))
def test_a_cpf_is_told_by_both_check_digits(number: str) -> None:
    shown = f"{number[:3]}.{number[3:6]}.{number[6:9]}-{number[9:]}"
    assert (CPF in national_numbers(f"of {shown}, paid")) is cpf.is_valid(number)
    assert (CPF in national_numbers(f"CPF {number}")) is cpf.is_valid(number)


@given(digits(9))
@settings(max_examples=20)
def test_a_cpf_is_found_whoever_has_it(number: str) -> None:
    endings = [f"{n:02}" for n in range(100) if CPF in national_numbers(f"CPF: {number}{n:02}")]
    assert endings == [f"{n:02}" for n in range(100) if cpf.is_valid(f"{number}{n:02}")]


@given(digits(10))
def test_an_nhs_number_is_told_by_its_check_digit(number: str) -> None:
    assert (NHS in national_numbers(f"NHS number {number}")) is (nhs.is_valid(number) and len(set(number)) > 1)


@given(digits(9))
def test_a_bsn_is_told_by_its_proof_of_eleven(number: str) -> None:
    assert (BSN in national_numbers(f"bsn {number}")) is (bsn.is_valid(number) and len(set(number)) > 1)


@cases(
    ("text", "kind"),
    [
        ("529.982.247-25", CPF),
        ("(529.982.247-25)", CPF),
        ("cpf=52998224725", CPF),
        ("52998224725 (CPF)", CPF),
        ("AB 12 34 56 C", NINO),
        ("AB-12-34-56-C", NINO),
        ("NI number AB123456C", NINO),
        ("her National Insurance number is ab123456c", NINO),
        ("NINO: AB 123456 C", NINO),
        ("NHS 943 476 5919", NHS),
        ("NHS no. 943-476-5919", NHS),
        ("9434765919 is the NHS number", NHS),
        ("BSN 111222333", BSN),
        ("burgerservicenummer 1112.22.333", BSN),
        ("111222333 (bsn)", BSN),
    ],
)
def test_a_number_is_found_as_people_write_it(text: str, kind: str) -> None:
    assert list(national_numbers(text)) == [kind]
    assert may_hold_number(text.encode())


@cases(
    "text",
    [
        "529.982.247-26",
        "111.111.111-11",
        "order 52998224725",
        "1529.982.247-25",
        "case AB123456C",
        "QQ 12 34 56 C",
        "GB 12 34 56 A",
        "AB 12 34 56 E",
        "sizes AB 12 34 56 Cm",
        "call 943 476 5919",
        "NHS number 943 476 5918",
        "NHS 111 or 0300 303 5678",
        "1 943 476 5919 is the NHS helpline",
        "BSN 2 of order 111222333",
        "invoice 111222333",
        "BSN 111222334",
        "the BSN is asked for in form 12 of the portal; order 111222333",
        "a BSN has nine digits, such as those that are printed on the card of an order 111222333",
    ],
)
def test_what_is_no_such_number_or_stands_far_from_its_name_is_left_alone(text: str) -> None:
    assert list(national_numbers(text)) == []


@cases(("name", "kinds"), [("bsn", [BSN]), ("customer_bsn", [BSN]), ("customer", []), ("0", [])])
def test_the_name_of_a_field_is_the_name_of_its_number(name: str, kinds: list[str]) -> None:
    assert list(national_numbers("111222333", name=name)) == kinds


@given(st.sampled_from(SHAPES).flatmap(lambda shape: st.from_regex(shape())), st.text(max_size=20))
def test_the_fast_question_misses_none(number: str, around: str) -> None:
    text = f"{around} {number} {around}"
    if any(shape().search(text) for shape in SHAPES):
        assert may_hold_number(text.encode())
