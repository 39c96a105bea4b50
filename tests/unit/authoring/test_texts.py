"""What may be written nowhere in a pack: every shape is found, wherever it stands and whatever stands around it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.gates import belonging, security
from contextplane.authoring.texts import Texts
from tests.unit.authoring.packs import changed, findings

SECRETS = {
    "AWS access key": "AKIAIOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "Slack token": "xoxb-123456789012-abcdef",
    "API key": "sk-proj-abc123def456ghi789jkl",
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "private key": "-----BEGIN EC " + "PRIVATE KEY-----",
    "password": "Password = s3cr3t-enough",
}


@pytest.mark.parametrize("around", ["{}", "use {} now", 'token="{}"', "({})", "a\n{}\nb", "see {}."])
@pytest.mark.parametrize("kind", SECRETS)
def test_every_kind_of_secret_is_found_and_not_repeated(kind: str, around: str) -> None:
    found = findings(changed("/business_context/summary/what_we_do", around.format(SECRETS[kind])))
    told = [one for one in found if one.code == "secret_present"]
    assert f"this looks like a secret: {kind}" in [one.cause for one in told]
    assert {one.at for one in told} == {"/business_context/summary/what_we_do"}
    assert not any(SECRETS[kind] in f"{one.cause}{one.cure}" for one in found)


ASCII = st.characters(codec="ascii")

# A needle is looked for before a pattern is: one that a match does not hold would hide it.
NEEDLED = {
    "note": (belonging._NOTE, belonging._NOTE_WORDS),
    "code": (belonging._CODE, belonging._CODE_WORDS),
    "password": (security._PASSWORD, security._NAMES),
}


@pytest.mark.parametrize("name", NEEDLED)
@given(data=st.data())
def test_whatever_a_pattern_matches_holds_one_of_its_needles(name: str, data: st.DataObject) -> None:
    pattern, needles = NEEDLED[name]
    text = data.draw(st.from_regex(pattern, alphabet=ASCII))
    assert any(one in text.lower() for one in needles)
    assert [found for _, found in Texts({"a": [text]}).texts_with(pattern, *needles)] == [text]


@given(st.from_regex(belonging._RECORD, alphabet=ASCII))
def test_whatever_is_a_record_is_near_its_anchor(text: str) -> None:
    found = Texts({"a": text}).texts_near(belonging._VALUE, belonging._RECORD)
    match = belonging._RECORD.search(text)
    assert match is not None
    if len(match[0]) <= 64:  # blanks without end are no record that anybody writes
        assert [one for _, one in found] == [text]


def test_a_text_that_stands_twice_is_told_with_both_places() -> None:
    found = Texts({"a": "TODO", "b": ["TODO", "x"]}).texts_with(re.compile("TODO"), "todo")
    assert list(found) == [("/a", "TODO"), ("/b/0", "TODO")]
