"""Secrets that are told by what stands beside them, and all that may be said of secrets without giving one away."""

from contextplane.policy.detect.secrets import is_secret_value, labelled_secrets
from tests.support.cases import cases

GIVEN = [
    *("password is hunter2", "the password is Sommer2024!", "pwd=swordfish", "PASSWORD=swordfish", "pwd: Tr0ub4dor"),
    *('password: "swordfish"', "password: 12345678", "Password = s3cr3t-enough", "the passphrase is 'battery staple'"),
    *("api_key: abc123def456", "client_secret=Zx81kLm2", "api key is Zx81kLm2Qw99", "token: qwxzjkvbnmqplrtzxcvb"),
]
SAID = [
    *("the password is required", "password: required", "password is never shared", "password=redacted", "a pass"),
    *("the password is 12-character minimum", "the password is case-sensitive", "Passwords: 8-64 characters"),
    *("token: support_orders_v1", "token: order-lookup-token", "tokens: 1500", "the token is valid for 24h"),
    *("a secret is 2-factor authentication", "secret: vault://kv/payments#v2", "api_key: ${API_KEY}", "token=<token>"),
    *("the api key is rotated every 30 days", "access key: see the vault", "token: ********", "password: xxxxxxxx"),
    *("Authorization: Bearer <token>", "bearer authentication is used", "Bearer tokens are exchanged", "Bearer TOKEN"),
    *("https://host.example/path@2", "mailto:a@b.example", "https://{user}:{password}@host", "see http://a/b:c@d"),
]


@cases("text", GIVEN)
def test_what_follows_the_name_of_a_secret_and_looks_like_one_is_told(text: str) -> None:
    assert list(labelled_secrets(text)) == ["password"]
    assert list(labelled_secrets(f"first {text}, then go on")) == ["password"]


@cases("text", SAID)
def test_who_speaks_of_secrets_gives_none_away(text: str) -> None:
    assert list(labelled_secrets(text)) == []


@cases(
    ("text", "kind"),
    [
        ("Authorization: Bearer abcdef123456", "authorization header"),
        ("authorization=Basic dXNlcjpwYXNz", "authorization header"),
        ("send Bearer eyJhbGciOi12345 with it", "authorization header"),
        ("https://user" + ":pw@host", "password in an address"),
        ("amqps://:pw" + "123@queue/x", "password in an address"),
    ],
)
def test_headers_and_addresses_give_theirs_away(text: str, kind: str) -> None:
    assert list(labelled_secrets(text)) == [kind]


def test_a_name_within_what_follows_a_name_is_looked_at_too() -> None:
    assert list(labelled_secrets('token="Password = s3cr3t-enough"')) == ["password"]


@cases(
    ("name", "value", "expected"),
    [
        ("api_key", "Zx81kLm2Qw", True),
        ("db_password", "swordfish", True),
        ("access_token", "request.context.token", False),
        ("decision_key", "support.refund.execute2x", False),
        ("password", "never shown to anybody 2", False),
        ("token", "short1", False),
    ],
)
def test_a_field_holds_a_secret_by_its_name_and_its_value(name: str, value: str, *, expected: bool) -> None:
    assert is_secret_value(name, value) is expected


@cases("unit", ["password", "password is ", "token=", "a://", "bearer ", "authorization: ", "pwd:= "])
def test_no_text_takes_more_time_than_its_size_is_worth(unit: str) -> None:
    assert len(list(labelled_secrets(unit * (200_000 // len(unit))))) <= 3
