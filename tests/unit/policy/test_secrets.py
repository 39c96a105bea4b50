"""What looks like a secret: each kind is found wherever it stands and however its bytes come; text has none."""

import base64
import hashlib
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.canonical import Json
from contextplane.policy.detect.secrets import (
    _SHAPES,
    HIDDEN,
    SEARCH_LIMIT,
    SecretScan,
    SecretScanResult,
    redact_shapes,
    scan_value,
    secret_shapes,
)
from tests.support.cases import cases

TOKEN = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")

# Put together here, so that nothing in this file looks like one.
PLANTED = [
    ("private key", "-----BEGIN RSA PRIVATE" + " KEY-----"),
    ("private key", "-----BEGIN PRIVATE" + " KEY-----"),
    ("private key", "-----BEGIN PGP PRIVATE" + " KEY BLOCK-----"),
    ("AWS access key", "AKIA" + "A1" * 8),
    ("AWS access key", "ASIA" + "A1" * 8),
    *(("GitHub token", f"gh{letter}_" + "a1" * 18) for letter in "pousr"),
    ("GitHub token", "github_pat_" + "a1" * 11 + "_" + "b2" * 29),
    ("Hugging Face token", "hf_" + "aB" * 17),
    ("npm token", "npm_" + "a1" * 18),
    ("Stripe key", "sk_live_" + "a1" * 12),
    ("Stripe key", "rk_test_" + "a1" * 12),
    ("GitLab token", "glpat-" + "a1_b-" * 4),
    *(("Slack token", f"xox{letter}-" + "1" * 12) for letter in "abprs"),
    ("API key", "sk-" + "a1" * 12),
    ("API key", "sk-" + "ab" * 12),
    ("API key", "sk-ant-" + "aB" * 12),
    ("API key", "sk-proj-" + "abcdefghij" * 3 + "4"),
    ("JSON Web Token", f"{TOKEN}.{TOKEN}.{TOKEN}"),
]
SECRETS = [text.encode() for _, text in PLANTED]

ORDINARY = [
    "AKIA is a prefix, ghp_ too, sk- as well; the task-list, eyJ.eyJ.",
    "a task-management-system-with-2-desks and risk-assessment-for-2026-05-04-and-later",
    "sk-fading-circle-animation-delay { color: red }",
    "the CAKIA1234567890123456 and AKIA12345678901234567890 are of other lengths",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----",
    "xoxo-kisses and hugs-and-more-hugs; the end of a fox-xoxb",
    "sha256:" + "0123456789abcdef" * 4,
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "high_priority_" + "a1" * 18,
    "sk_live_ and sk_test_ begin keys; task_live_" + "a1" * 12,
    "half_" + "a" * 40 + " and npm_install_all_of_the_packages_at_once",
    "glpat-short",
]

pieces = st.sampled_from(
    [*SECRETS, *(word.encode() for word in ORDINARY), b"-", b"_", b" ", b"\n", b"eyJ", b"sk-", b"x"]
)
contents = st.lists(pieces | st.binary(max_size=20) | st.just(b"a1" * 700), max_size=6).map(b"".join)


@cases(("kind", "text"), PLANTED)
def test_each_kind_is_found_wherever_it_stands(kind: str, text: str) -> None:
    for before, after in [
        ("", ""),
        ("see ", " here"),
        ('{"key":"', '"}'),
        ("\n", "\n"),
        ("word " * 20_000, " word" * 9),
    ]:
        assert secret_shapes(f"{before}{text}{after}".encode()) == (kind,)


@cases("text", ORDINARY)
def test_ordinary_text_has_none(text: str) -> None:
    assert secret_shapes(text.encode()) == ()


def test_neither_have_bytes_at_random_nor_their_base64() -> None:
    data = hashlib.shake_128(b"seed").digest(300_000)
    assert secret_shapes(data) == secret_shapes(base64.b64encode(data)) == secret_shapes(data.hex().encode()) == ()


def test_all_kinds_of_a_content_are_told_once_and_in_one_order() -> None:
    kinds = tuple(sorted({kind for kind, _ in PLANTED}, key=[kind for kind, _, _ in _SHAPES].index))
    assert secret_shapes(b"\n".join(SECRETS)) == secret_shapes(b" ".join(SECRETS[::-1] * 2)) == kinds


@given(contents, st.lists(st.integers(0, 3000), max_size=8))
def test_wherever_a_stream_is_cut_the_answer_is_that_of_the_whole(data: bytes, cuts: list[int]) -> None:
    scan = SecretScan()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        scan.see(data[start:end])
    assert scan.kinds == secret_shapes(data)


@cases("secret", SECRETS)
def test_a_secret_across_a_border_is_found_at_every_cut_and_byte_by_byte(secret: bytes) -> None:
    long = b"some text " * 300
    for cut in range(len(secret) + 1):
        scan = SecretScan()
        scan.see(long + secret[:cut])
        scan.see(secret[cut:] + b" " + long)
        assert scan.kinds == secret_shapes(secret)
    scan = SecretScan()
    for n in range(len(secret)):
        scan.see(secret[n : n + 1])
    assert scan.kinds == secret_shapes(secret)


@pytest.mark.parametrize("word", [b"task-" + b"a1" * 12, b"CAKIA" + b"A1" * 8, f"the{TOKEN}.{TOKEN}".encode()])
def test_a_word_does_not_become_a_secret_when_its_beginning_has_passed(word: bytes) -> None:
    scan = SecretScan()
    for data in [word, *[b" "] * 1500]:
        scan.see(data)
    assert scan.kinds == secret_shapes(word) == ()


def test_of_a_large_content_the_beginning_is_looked_at_however_it_comes() -> None:
    for cut in (1000, 1 << 16, 1 << 20):
        for room, expected in [(0, SECRETS[3]), (1, b"")]:
            data = b" " * (SEARCH_LIMIT - len(SECRETS[3]) + room) + SECRETS[3] + b" " * 1000
            scan = SecretScan()
            for start in range(0, len(data), cut):
                scan.see(data[start : start + cut])
            assert scan.kinds == secret_shapes(data) == secret_shapes(expected)


def test_looking_at_what_was_found_so_far_changes_nothing() -> None:
    scan = SecretScan()
    assert not scan.kinds
    scan.see(b"AKIA" + b"A1" * 8)
    assert scan.kinds == ("AWS access key",)
    scan.see(b"B2, so it was none")
    assert not scan.kinds


@cases(
    "unit",
    ["-", "sk-", "eyJ-", "eyJ", "_", "gh", "ghp_", ".eyJ", "-----BEGIN ", "xoxb-", "AKI", "sk-a-", "hf_a"],
)
def test_no_content_takes_more_time_than_its_size_is_worth(unit: str) -> None:
    # Of a search that begins anew at each place of a run, one of these would take hours.
    secret_shapes(unit.encode() * (400_000 // len(unit)))


@cases(
    "value",
    [
        {"headers": [{"Authorization": f"Bearer {PLANTED[-1][1]}"}]},
        {"a": [1, None, True, 2.5, "first line\n" + PLANTED[-1][1]]},
        {PLANTED[-1][1]: {}},
        PLANTED[-1][1],
    ],
)
def test_the_texts_in_a_value_are_looked_at(value: Json) -> None:
    assert scan_value(value) == SecretScanResult(kinds=("JSON Web Token",), whole=True)


def test_a_value_without_any_and_a_very_deep_one() -> None:
    assert scan_value({"path": "order.json", "n": [1, 2.5, None, False], "lone": "\ud800"}).kinds == ()
    deep: Json = "AKIA" + "A1" * 8
    for _ in range(20_000):
        deep = [deep]
    assert scan_value(deep).kinds == ("AWS access key",)


@given(extra=st.integers(-2, 2), cut=st.integers(1, 9))
def test_whether_all_of_it_was_looked_at_is_told(extra: int, cut: int) -> None:
    text = "\u20ac" * (SEARCH_LIMIT // 3) + "x" * (SEARCH_LIMIT % 3 + extra + 2)
    size = len(text.encode())
    assert scan_value(text).whole is (size <= SEARCH_LIMIT)
    assert scan_value([text[:cut], {text[cut:]: None}]).whole is (size + 1 <= SEARCH_LIMIT)  # with a line end between


@given(contents)
def test_what_is_known_of_the_pieces_of_a_content_changes_nothing_that_is_found(data: bytes) -> None:
    pieces = re.findall(rb"[A-Za-z0-9]+", data)
    assert secret_shapes(data, longest_piece=max(map(len, pieces), default=0)) == secret_shapes(data)


BLOCK = f"-----BEGIN RSA {'PRIVATE'} KEY-----"


@cases(
    ("text", "expected"),
    [
        ("not a digest: 'use key AKIAABCDEFGHIJKLMNOP now'", f"not a digest: 'use key {HIDDEN} now'"),
        (f"/a/{BLOCK}/b: no", f"/a/{HIDDEN}/b: no"),
        (f"x {BLOCK} y", f"x {HIDDEN} y"),
        ("sha256:" + "a1" * 32, "sha256:" + "a1" * 32),
        ("nothing of that kind", "nothing of that kind"),
        ("x" * 300_000 + " AKIAABCDEFGHIJKLMNOP y", f"{HIDDEN} {HIDDEN} y"),
        ("many words " * 30_000 + "AKIAABCDEFGHIJKLMNOP", "many words " * 30_000 + HIDDEN),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_repeated_has_no_word_of_the_shape_of_a_secret(text: str, expected: str) -> None:
    assert redact_shapes(text) == expected
    assert secret_shapes(redact_shapes(text).encode()) == ()
