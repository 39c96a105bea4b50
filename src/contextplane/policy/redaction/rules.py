"""The redaction rules: the names that a pack may use, what each masks, and the fields it knows.

A rule acts in three ways: by shape, on text that looks like it; by field, on the value of a member whose name says so;
and by schema, where `x-redact` marks a property. Rules about secrets are always active. All others are active where a
pack lists them.
"""

from collections.abc import Collection, Iterator
from typing import Literal

from contextplane.model.value import Value
from contextplane.policy.redaction.folded_text import fold
from contextplane.policy.regex_safety import lazy_regex

__all__ = [
    "ALWAYS_ACTIVE",
    "MASK",
    "REDACTIONS",
    "RULES",
    "UNNAMED",
    "WEAK",
    "FieldNames",
    "RedactionRule",
    "RedactionWay",
    "mask",
]

RedactionWay = Literal["shape", "field", "schema"]
"""How a rule found what it masked."""


class RedactionRule(Value, frozen=True):
    """A rule. `shape`: what text it masks, in words. `fields`: the member names that it knows.

    A member has a name when its words end in it: `customer_email` ends in `email`. A name after `=` must be the whole
    name of the member. `weak`: most of what it names has no shape, so it needs a field, or a mark in a schema.
    """

    name: str
    shape: str
    fields: tuple[str, ...]
    secret: bool = False
    weak: bool = False


def _rule(name: str, shape: str, fields: str, *, secret: bool = False, weak: bool = False) -> RedactionRule:
    return RedactionRule(name=name, shape=shape, fields=tuple(fields.split()), secret=secret, weak=weak)


_PEOPLE = (
    *("account_holder", "applicant", "beneficiary", "birth", "buyer", "card_holder", "cardholder", "client", "contact"),
    *(
        "customer",
        "employee",
        "family",
        "first",
        "full",
        "given",
        "guest",
        "holder",
        "last",
        "legal",
        "maiden",
        "member",
    ),
    *("middle", "nominee", "owner", "passenger", "patient", "payee", "payer", "person", "preferred", "recipient"),
    *("requester", "sender", "student", "subscriber", "user", "employee"),
)

RULES: tuple[RedactionRule, ...] = (
    # Official numbers.
    _rule(
        "pan",
        "Indian permanent account number (`ABCPE1234F`); payment card number with a valid check digit",
        "pan pan_no pan_number pan_card permanent_account_number",
    ),
    _rule(
        "aadhaar",
        "Aadhaar number with a valid check digit, in one piece or in groups of four",
        "aadhaar aadhaar_no aadhaar_number aadhaar_id aadhar aadhar_no aadhar_number adhaar uidai",
    ),
    _rule(
        "ssn",
        "social security number (`123-45-6789`, or nine digits beside `ssn`); UK National Insurance number, NHS number "
        "and Dutch citizen service number beside their names",
        "ssn ssn_number social_security social_security_no social_security_number national_insurance_number nino "
        "ni_number bsn burgerservicenummer nhs_number national_id national_id_number national_identity_number",
    ),
    _rule(
        "passport",
        "number beside the word passport; machine-readable line of a passport",
        "passport passport_no passport_number passport_id",
    ),
    _rule(
        "driving_licence",
        "number beside the words driving licence or driver's license; British and Indian licence numbers",
        "driving_licence driving_licence_no driving_licence_number driving_license driving_license_no "
        "driving_license_number driver_licence driver_licence_number driver_license driver_license_number "
        "drivers_licence drivers_licence_number drivers_license drivers_license_number dl_number dl_no",
    ),
    _rule(
        "tax_id",
        "Brazilian CPF and Indian GSTIN with valid check digits; number beside a word such as tax id, TIN, EIN or VAT",
        "tax_id tax_no tax_number taxpayer_id tax_identification_number tin ein itin cpf cnpj gstin gst_number gst_no "
        "vat_id vat_no vat_number steuer_id steuernummer nif utr tfn",
    ),
    # Accounts.
    _rule(
        "credit_card",
        "payment card number of a known issuer with a valid check digit",
        "credit_card credit_card_no credit_card_number card_no card_number card_num debit_card debit_card_no "
        "debit_card_number cc_number cc_num card_pan primary_account_number",
    ),
    _rule(
        "cvv",
        "three or four digits beside cvv, cvc or security code",
        "cvv cvv2 cvc cvc2 cvv_code cvc_code card_security_code card_verification_value card_verification_code",
    ),
    _rule("iban", "IBAN of a known country with valid check digits", "iban iban_no iban_number iban_code"),
    _rule(
        "bank_account",
        "digits beside account number, routing number or sort code; IBAN with valid check digits",
        "bank_account bank_account_no bank_account_number account_no account_number acct_no acct_number routing_no "
        "routing_number sort_code iban iban_no iban_number",
    ),
    _rule(
        "upi_id",
        "UPI address with the handle of a known provider (`jane@okaxis`)",
        "=upi upi_id upi_address =vpa vpa_id virtual_payment_address",
    ),
    # Other data that identifies a person.
    _rule(
        "name",
        "words after a form of address (`Mr`, `Dr`) or after `my name is`; a line `name: Jane Doe`",
        "=name surname firstname lastname fullname forename nickname cardholder account_holder "
        + " ".join(f"{person}_name" for person in dict.fromkeys(_PEOPLE)),
        weak=True,
    ),
    _rule("email", "e-mail address", "email emails e_mail email_address email_addresses email_id =mail mail_address"),
    _rule(
        "phone",
        "telephone number in international form or in groups; digits beside a word such as phone",
        "phone phones phone_no phone_number phone_numbers telephone telephone_number =tel mobile mobile_no "
        "mobile_number cell cellphone cell_phone cell_number msisdn whatsapp whatsapp_number fax fax_number contact_no "
        "contact_number",
    ),
    _rule(
        "address",
        "house number and street (`12 Main Street`); a line `address: ...` with a digit",
        "address addresses =addr street street_address street_name address_line address_line_1 address_line_2 =zip "
        "zip_code postcode post_code postal_code",
        weak=True,
    ),
    _rule(
        "date_of_birth",
        "date beside date of birth, DOB, birthday or born",
        "date_of_birth =dob birth_date birthdate birthday date_birth =born born_on",
    ),
    _rule(
        "ip_address",
        "IPv4 and IPv6 address",
        "=ip ip_address ip_addresses ip_addr =ipv4 =ipv6 client_ip remote_ip remote_addr source_ip user_ip "
        "x_forwarded_for",
    ),
    # Secrets.
    _rule(
        "password",
        "value beside password or passphrase; password in an address (`https://user:...@host`)",
        "password passwd =pwd passphrase passcode =mpin card_pin atm_pin =otp one_time_password",
        secret=True,
    ),
    _rule(
        "api_key",
        "AWS, Stripe and `sk-` keys; value beside secret or API key",
        "api_key apikey secret_key client_secret app_secret =secret signing_key signing_secret webhook_secret auth_key "
        "access_key access_key_id secret_access_key account_key shared_key encryption_key subscription_key",
        secret=True,
    ),
    _rule(
        "access_token",
        "GitHub, GitLab, npm, Hugging Face and Slack tokens, JSON Web Tokens, authorization headers; value after token",
        "access_token auth_token refresh_token id_token bearer_token session_token api_token csrf_token private_token "
        "security_token =token =jwt =bearer =authorization proxy_authorization =cookie set_cookie session_cookie",
        secret=True,
    ),
    _rule(
        "private_key",
        "private key in PEM or PGP form, whole",
        "private_key private_key_pem rsa_private_key ssh_private_key",
        secret=True,
    ),
)

REDACTIONS = frozenset(rule.name for rule in RULES)
"""The names that packs may use. Any other name would never be redacted."""

ALWAYS_ACTIVE = tuple(rule.name for rule in RULES if rule.secret)
"""Rules about secrets: no prompt needs one, so a pack cannot switch them off."""

WEAK = frozenset(rule.name for rule in RULES if rule.weak)
"""Rules whose fields are words for other things too: `name` is that of a file, `address` that of a server."""

UNNAMED = "x-redact"
"""The name in the mask of a property whose schema says `x-redact: true` and whose name no rule knows."""

MASK = lazy_regex(rf"\[redacted:(?:{'|'.join(sorted((*REDACTIONS, UNNAMED)))})\]")


def mask(rule: str) -> str:
    """The text that stands for a masked value: the same for every value, so that it says nothing of it."""
    return f"[redacted:{rule}]"


# --- Names of members ---

_WORDS = lazy_regex(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_TAIL = frozenset({"plain", "plaintext", "raw", "text", "value"})
_MEMO_LIMIT = 4096
_NAME_LENGTH = 256
_OTHER_ADDRESSES = frozenset(
    (
        *("bus", "contract", "email", "hardware", "host", "ip", "ipv4", "ipv6", "mac", "mail", "memory", "network"),
        *("payment", "server", "upi", "url", "wallet", "web"),
    )
)
"""What stands before `address` where it is not where a person lives."""

_OTHER_PLURALS = frozenset({"authorization", "bearer", "cell", "mail", "pan", "tin", "token", "zip"})
"""Fields whose plural is a word for something else: `tokens` are most often counted, `cells` those of a table."""


def _names_of(fields: Collection[str]) -> Iterator[str]:
    """Yield each name of a member, and the same in one word: `card_number`, `cardnumber`."""
    for field in fields:
        yield field
        if "_" in field:
            yield "=" * field.startswith("=") + field.replace("_", "").lstrip("=")


class FieldNames:
    """Finds the rule for the name of a member, among the active rules."""

    def __init__(self, active: Collection[str]) -> None:
        self._rules: dict[str, str] = {}
        for rule in RULES:
            for name in _names_of(rule.fields) if rule.name in active else ():
                self._rules.setdefault(name, rule.name)
        self._memo: dict[str, tuple[str | None, bool]] = {}

    def rule(self, name: str) -> str | None:
        """The rule that masks the value of a member of this name; None when no active rule does."""
        return self._look_up(name)[0]

    def is_plural(self, name: str) -> bool:
        """Whether a name is the plural of a field that is listed in the singular."""
        return self._look_up(name)[1]

    def _look_up(self, name: str) -> tuple[str | None, bool]:
        try:
            return self._memo[name]
        except KeyError:
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            entry = self._memo[name] = self._find(name)
            return entry

    def _find(self, name: str) -> tuple[str | None, bool]:
        # A name that was masked says nothing of its value. The last words of a long name say what it is.
        name = fold((MASK().sub("", name) if name.startswith("[") else name)[-_NAME_LENGTH:]).text
        words = [word.lower() for word in _WORDS().findall(name)]
        while len(words) > 1 and (words[-1] in _TAIL or words[-1].isdigit()):
            words.pop()
        rule = self._of_words(words)
        if rule is not None or not words or not words[-1].endswith("s"):
            return rule, False
        rule = self._of_words([*words[:-1], words[-1][:-1]], is_plural=True)
        return rule, rule is not None

    def _of_words(self, words: list[str], *, is_plural: bool = False) -> str | None:
        whole = "_".join(words)
        if f"={whole}" in self._rules:
            return None if is_plural and whole in _OTHER_PLURALS else self._rules[f"={whole}"]
        for start in range(len(words)):
            name = "_".join(words[start:])
            rule = None if is_plural and name in _OTHER_PLURALS else self._rules.get(name)
            if rule is not None and not (rule == "address" and start and words[start - 1] in _OTHER_ADDRESSES):
                return rule
        return None
