"""How the texts of a document are looked at: fast as a whole, and part by part where something may be wrong."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.gates import misplaced_content, security
from contextplane.authoring.texts import DocumentTexts
from contextplane.policy.detect.personal_data import CARD, OFFICIAL
from contextplane.policy.detect.secrets import labelled_secrets
from contextplane.policy.regex_safety import LazyPattern, lazy_regex
from tests.support.cases import cases
from tests.unit.authoring.packs import changed, findings

KINDS = {
    "AWS access key": "AKIAIOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "Slack token": "xoxb-123456789012-abcdef",
    "API key": "sk-proj-abc123def456ghi789jkl",
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "private key": "-----BEGIN EC " + "PRIVATE KEY-----",
    "password": "Password = s3cr3t-enough",
}


@cases("around", ["{}", "use {} now", 'token="{}"', "({})", "a\n{}\nb", "see {}."])
@cases("kind", KINDS)
def test_every_kind_of_secret_is_named_and_not_repeated(kind: str, around: str) -> None:
    everything = findings(changed("/business_context/summary/what_we_do", around.format(KINDS[kind])))
    secrets = [finding for finding in everything if finding.code == "secret_present"]
    assert f"this looks like a secret: {kind}" in [finding.cause for finding in secrets]
    assert {finding.at for finding in secrets} == {"/business_context/summary/what_we_do"}
    assert not any(KINDS[kind] in f"{finding.cause}{finding.cure}" for finding in everything)


ASCII = st.characters(codec="ascii", exclude_characters="\x00\x1f")

# A needle is searched for before its pattern: a needle that a match lacks would hide the match.
NEEDLED = {
    "note": (misplaced_content._NOTE, misplaced_content._NOTE_WORDS),
    "code": (misplaced_content._CODE, misplaced_content._CODE_WORDS),
}


@pytest.mark.parametrize("name", NEEDLED)
@given(data=st.data())
def test_whatever_a_pattern_matches_holds_one_of_its_needles(name: str, data: st.DataObject) -> None:
    pattern, needles = NEEDLED[name]
    text = data.draw(st.from_regex(pattern(), alphabet=ASCII))
    document = DocumentTexts({"a": [text]})
    if pattern().search(document.texts[0][1]):  # as a reader sees it
        assert [at for at, _ in document.sentences_with(pattern, *needles)] == ["/a/0"]


@cases("joint", ["=", ": ", " = ", " is ", '": "'])
@cases(
    "name",
    [
        *("password", "Passwd", "pass" + "phrase", "passcode", "PWD", "client_secret", "token", "api_key", "API key"),
        *("access-key", "apikey", "account_key", "secretkey", "signing key", "Authorization: Bearer", "bearer"),
    ],
)
def test_whatever_name_a_secret_is_given_away_by_is_looked_for(name: str, joint: str) -> None:
    text = f"the {name}{' ' if 'earer' in name else joint}Zx81kLm2Qw99xy"
    assert any(labelled_secrets(text))
    assert [violation.at for violation in security.no_secret_is_here(DocumentTexts({"a": text}))] == ["/a"]


@given(
    st.from_regex(misplaced_content._RECORD(), alphabet=ASCII),
    st.from_regex(misplaced_content._RECORD(), alphabet=ASCII),
)
def test_two_records_in_a_text_are_found(first: str, second: str) -> None:
    document = DocumentTexts({"a": f"{first} {second}"})
    if len(misplaced_content._RECORD().findall(document.texts[0][1])) > 1:
        assert [violation.at for violation in misplaced_content.no_record_is_here(document)] == ["/a"]


@pytest.mark.parametrize("number", [CARD, OFFICIAL])
@given(data=st.data())
def test_whatever_may_be_an_official_number_is_asked_about(number: LazyPattern, data: st.DataObject) -> None:
    document = DocumentTexts([data.draw(st.from_regex(number(), alphabet=ASCII))])
    if number().search(document.texts[0][1]):
        assert document.may_hold_number


DOCUMENTS = st.recursive(
    st.sampled_from(["TODO", "a b", "password=x", "(x)", "x:y", "name", "T:", "=>", "<a", "#!", "FIXME", "XXX", "a=b"])
    | st.text(alphabet="aZ0 :=(<#!>/-_.", max_size=12)
    | st.integers(),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text("ab c", max_size=3), parts, max_size=4),
)


@given(DOCUMENTS)
def test_the_fast_way_sees_every_text_that_the_slow_way_sees(value: Any) -> None:  # noqa: ANN401  any JSON
    fast, slow = DocumentTexts(value), DocumentTexts([value, "\n"])
    assert fast.is_simple
    assert not slow.is_simple
    assert set(fast.sentences) >= {text for text in slow.sentences if text != "\n"}
    assert set(fast.sentences) & {text for _, text in fast.texts} <= set(slow.sentences)


def test_a_text_that_stands_twice_is_told_with_both_places() -> None:
    sentences = DocumentTexts({"a": "TODO", "b": ["TODO", "x"]}).sentences_with(lazy_regex("TODO"), "todo")
    assert list(sentences) == [("/a", "TODO"), ("/b/0", "TODO")]


def test_names_are_looked_at_where_they_are_no_plain_name() -> None:
    value: dict[str, Any] = {"short": 1, "a name with blanks": 2, "n" * 20: 3, "p\u0430y": 4}
    assert [text for _, text in DocumentTexts(value).raw_texts] == ["a name with blanks", "n" * 20, "p\u0430y"]


@pytest.mark.parametrize("value", [4111111111111111, 4111111111111111.0, -4111111111111111])
def test_a_long_number_is_looked_at_like_a_text(value: float) -> None:
    assert [text.lstrip("-") for _, text in DocumentTexts([value, True, 17]).texts] == ["4111111111111111"]


@cases("value", [None, "", 4111111111111111, [], {}, "x" * 20, True])
def test_whatever_a_document_is_it_can_be_looked_at(value: Any) -> None:  # noqa: ANN401  any JSON
    document = DocumentTexts(value)
    for law in (*security.TEXT_LAWS, *misplaced_content.TEXT_LAWS):
        assert [finding.code for finding in law.findings(document)] in ([], ["personal_number_present"])
    assert document.pieces == tuple(text for _, text in document.texts if text)
