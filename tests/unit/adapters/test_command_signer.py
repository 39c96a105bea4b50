"""A command that signs is believed only as far as its answers can be checked."""

import json
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import pytest

from contextplane.adapters.ed25519 import Ed25519Check
from contextplane.adapters.signers.command import CommandSigner
from contextplane.adapters.signers.external import CheckedSigner
from contextplane.app.registry.signers import open_external_signer
from contextplane.errors import ContextPlaneError
from contextplane.trust.dsse import pae
from tests.unit.trust.world import key_of

BOB = key_of("bob")
PAGE = Path(__file__).parents[3] / "docs" / "signers.md"
GOOD = """
import base64, json, sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
line = sys.stdin.readline()
open("requests", "a").write(line)
request = json.loads(line)
if request["operation"] == "public_key":
    print(json.dumps({"public_key": base64.b64encode(key.public_key().public_bytes_raw()).decode()}))
else:
    message = base64.b64decode(request["message"])
    print(json.dumps({"signature": base64.b64encode(key.sign(message)).decode()}))
"""


def signer_of(code: str, *, seconds: float = 60) -> CheckedSigner:
    inner = CommandSigner([sys.executable, "-c", code], {}, at="command:test", seconds=seconds)
    return CheckedSigner(inner, Ed25519Check(), "command:test")


def refusal(signer: CheckedSigner) -> ContextPlaneError:
    with pytest.raises(ContextPlaneError) as refused:
        signer.sign(b"message")
    assert refused.value.hint
    assert refused.value.at == "command:test"
    return refused.value


def responding(public_key: str, signature: str) -> str:
    """The code of a signer that gives fixed answers."""
    return f"import sys; print({public_key!r} if 'public_key' in sys.stdin.read() else {signature!r})"


def test_a_command_signs_messages_of_any_size_and_is_asked_for_its_key_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    signer = signer_of(GOOD)
    messages = [b"", b"note\n", pae("application/vnd.in-toto+json", b"{}"), bytes(1_000_000)]
    for message in messages:
        assert Ed25519Check().holds(signer.public_key, signer.sign(message), message)
    requests = [json.loads(line) for line in (tmp_path / "requests").read_text().splitlines()]
    assert {request["format"] for request in requests} == {"contextplane.sign.v1"}
    assert [request["operation"] for request in requests] == ["public_key", *["sign"] * 4]
    assert [request["payload_type"] for request in requests[1:]] == [None, None, "application/vnd.in-toto+json", None]


OF_BOB = json.dumps({"public_key": b64encode(BOB.public_key.raw).decode()})
ZEROS = json.dumps({"signature": "A" * 86 + "=="})


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys; sys.exit(3)", "signer_failed"),
        ("import os; os.kill(os.getpid(), 9)", "signer_failed"),
        ("", "signer_response_invalid"),
        ("print('[' * 100000)", "signer_response_invalid"),
        (r"print('{}'); print('{}')", "signer_response_invalid"),
        ("print('x' * 70000)", "signer_response_invalid"),
        ("while True: print('x' * 70000)", "signer_response_invalid"),
        (r"import os; os.write(1, b'{\"public_key\": \"\xff\"}')", "signer_response_invalid"),
        (responding("{}", ZEROS), "signer_response_invalid"),
        (responding('{"public_key": 1}', ZEROS), "signer_response_invalid"),
        (responding('{"public_key": "AAAA"}', ZEROS), "signer_response_invalid"),
        (responding(json.dumps({"public_key": "A" * 43 + "="}), ZEROS), "signer_response_invalid"),  # a weak key
        (responding('{"public_key": "====", "more": 1}', ZEROS), "signer_response_invalid"),
        (responding(OF_BOB.replace("=", ""), ZEROS), "signer_response_invalid"),
        (responding(OF_BOB.replace('="', '= "'), ZEROS), "signer_response_invalid"),
        (responding(OF_BOB, '{"signature": "AAAA"}'), "signer_response_invalid"),
        (responding(OF_BOB, ZEROS), "signer_signature_wrong"),
        (responding(OF_BOB, OF_BOB), "signer_response_invalid"),
    ],
)
def test_what_is_wrong_with_a_response_is_an_error(code: str, error: str) -> None:
    assert refusal(signer_of(code)).code == error


def test_a_signature_over_another_message_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hashed = GOOD.replace("key.sign(message)", "key.sign(__import__('hashlib').sha512(message).digest())")
    assert refusal(signer_of(hashed)).code == "signer_signature_wrong"


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(600)",
        "import sys\nwhile True: sys.stderr.write('x' * 4096)",
        "import os, time; os.close(1); os.close(2); time.sleep(600)",
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5)'])",
    ],
)
def test_a_command_that_does_not_end_in_time_is_stopped(code: str) -> None:
    begin = time.monotonic()
    error = refusal(signer_of(code, seconds=0.5))
    assert (error.code, error.message) == ("signer_timed_out", "no response within 0.5 seconds")
    assert time.monotonic() - begin < 5


def test_what_a_command_says_when_it_fails_is_shown_in_one_printable_line() -> None:
    code = r"import sys; sys.stderr.write('no \x1b[31mPIN\x1b[0m\r\n\u202e' + 'x' * 200000); sys.exit(1)"
    message = refusal(signer_of(code)).message
    assert message.startswith("it ended with status 1: no [31mPIN [0m xxx")
    assert message.isprintable()
    assert len(message) < 400


@pytest.mark.parametrize("program", ["/no/such/program", "no-such-program", "/etc/passwd", "/", "a\0b"])
def test_a_program_that_cannot_be_started_is_not_found(program: str) -> None:
    signer = CheckedSigner(CommandSigner([program], {}, at="command:test"), Ed25519Check(), "command:test")
    assert refusal(signer).code == "signer_not_found"


@pytest.mark.parametrize(
    "setting",
    [
        *("", "command", "command:", "command:'open", "ssh-agent:", "COMMAND:x"),
        *("pkcs11:", "pkcs11:m.so", "pkcs11:?token=a&object=b", "pkcs11:m.so?token=a", "pkcs11:m.so?token=a&object="),
        *("pkcs11:m.so?token=a&object=b&object=c", "pkcs11:m.so?token=a&object=b&pin-value=1"),
    ],
)
def test_a_setting_in_no_known_form_is_refused(setting: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        open_external_signer(setting, lambda: None, {})
    assert (refused.value.code, refused.value.at) == ("signer_setting_invalid", "CTX_SIGNER")


def test_without_its_extra_a_token_names_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pkcs11", None)  # as if it were not installed
    with pytest.raises(ContextPlaneError) as refused:
        open_external_signer("pkcs11:m.so?token=a&object=b", lambda: b"1234", {})
    assert refused.value.code == "signer_unavailable"
    assert refused.value.hint == "pip install 'contextplane[pkcs11]'"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the example calls openssl, which is not installed")
def test_the_signer_of_the_page_signs(tmp_path: Path) -> None:
    script, key = tmp_path / "sign it.py", tmp_path / "key.pem"
    script.write_text(PAGE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0])
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True, capture_output=True)
    setting = f"command:{sys.executable} '{script}' {key}"
    signer = open_external_signer(setting, lambda: None, {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    assert Ed25519Check().holds(signer.public_key, signer.sign(b"message"), b"message")
    key.unlink()
    with pytest.raises(ContextPlaneError) as refused:
        signer.sign(b"message")
    assert refused.value.code == "signer_failed"
    assert refused.value.at == f"command:{sys.executable}"
