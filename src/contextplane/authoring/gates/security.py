"""The security gate: a pack holds no secret and no personal data, and exposes no unbounded tool."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator

from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import Subject
from contextplane.authoring.texts import DocumentTexts
from contextplane.authoring.tool_arguments import bounds_arguments, bounds_value
from contextplane.policy.detect.invisible_text import invisible_characters, mixed_words
from contextplane.policy.detect.personal_data import (
    BULK_COUNT,
    emails,
    official_numbers,
    persons_phone_numbers,
    phone_numbers,
)
from contextplane.policy.detect.secrets import (
    LABELS,
    SEARCH_LIMIT,
    holds_random_run,
    is_random,
    is_secret_value,
    labelled_secrets,
    secret_shapes,
)

__all__ = ["LAWS", "TEXT_LAWS"]

_CREDENTIALS = re.compile(r"//[^/@\s]+@|[?&;](?:[a-z_-]*(?:key|token|secret|password|passwd|pwd|sig))=", re.IGNORECASE)
_FIELDS, _SECRET_FIELDS = '"params":', ('password":"', 'secret":"', 'token":"', 'key":"')
"""The name of a secret can be one of these only where an author chooses the names."""

_MOST_TOOLS = 24
_SMALL_ADAPTER = 8
_IDEMPOTENCY = "idempotency_key"


def no_secret_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """No text looks like a token, a key, a key block or a password that is given away."""
    if not _may_hold_secret(document):
        return
    for at, text in document.texts:
        for kind in _secret_kinds(at.rpartition("/")[2], text):
            yield Violation(
                at=at,
                cause=f"this looks like a secret: {kind}",
                cure="revoke it now, keep the new one in the credential vault, and name only its endpoint here",
            )


def _may_hold_secret(document: DocumentTexts) -> bool:
    text, prose = document.full_text, document.prose
    if any(map(prose.__contains__, LABELS)):
        return True
    has_fields = not document.is_simple or _FIELDS in text
    if "@" in text or (has_fields and any(field in text for field in _SECRET_FIELDS)):
        return True
    return bool(_shapes(document.full_bytes, longest_piece=max(map(len, document.pieces), default=0)))


def _secret_kinds(name: str, text: str) -> list[str]:
    named = {"password"} if is_secret_value(name, text) else set()
    return sorted(_shapes(text.encode(errors="replace")) | named | set(labelled_secrets(text)))


def _shapes(data: bytes, *, longest_piece: int = SEARCH_LIMIT) -> set[str]:
    """Return the shapes of secrets anywhere in a text. The detector looks at the beginning of a text only."""
    if len(data) <= SEARCH_LIMIT:
        return set(secret_shapes(data, longest_piece=longest_piece))
    shapes: set[str] = set()
    for start in range(0, len(data), SEARCH_LIMIT // 2):
        shapes.update(secret_shapes(data[start : start + SEARCH_LIMIT], longest_piece=longest_piece))
    return shapes


def no_text_is_as_random_as_a_secret(document: DocumentTexts) -> Iterator[Violation]:
    """No text holds a long run of characters as random as only keys are."""
    if not any(map(is_random, document.pieces)):
        return
    for at, text in document.texts:
        if holds_random_run(text):
            yield Violation(
                at=at,
                cause="this holds a run of characters as random as a key",
                cure="if it is one, revoke it and keep it in the credential vault; else give it a readable name",
            )


def no_character_is_unseen(document: DocumentTexts) -> Iterator[Violation]:
    """No text holds an invisible character: a reviewer and a model would read two different texts."""
    for at, text in document.raw_texts if document.has_special_characters else ():
        if characters := invisible_characters(text):
            yield Violation(
                at=at,
                cause=f"this contains invisible characters: {', '.join(characters[:5])}",
                cure="remove them; they can reverse a text, or hide one",
            )


def no_word_is_of_two_scripts(document: DocumentTexts) -> Iterator[Violation]:
    """No word mixes letters of scripts that look alike, such as Latin and Cyrillic."""
    for at, text in document.raw_texts if document.has_special_characters else ():
        if words := mixed_words(text):
            yield Violation(
                at=at,
                cause=f"a word in this mixes letters that look alike: {words[0][:60]}",
                cure="write the word in one script",
            )


def endpoints_carry_no_credentials(subject: Subject) -> Iterator[Violation]:
    """No endpoint_ref carries a user, a password or a token."""
    for at, adapter in subject.adapters.values():
        endpoint = adapter.endpoint_ref
        if ("@" in endpoint or "=" in endpoint) and _CREDENTIALS.search(endpoint):
            yield Violation(
                at=f"{at}/endpoint_ref",
                cause=f"the endpoint of {adapter.adapter_id} carries credentials",
                cure="write internal://<name>; the Tool Gateway exchanges the credentials for each call",
            )


def no_official_number_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """No text holds the number of a card, of an account or of a person."""
    for at, text in document.texts if document.may_hold_number else ():
        for kind in dict.fromkeys(official_numbers(text, document.identify, name=at.rpartition("/")[2])):
            known = f"this looks like personal data: {kind}"
            yield Violation(
                at=at,
                cause=known if kind else "cannot tell whether this is the number of an account or of a person",
                cure="keep the record in the knowledge graph, and refer to it by an evidence_ref",
                unknown=kind is None,
            )


def no_list_of_people_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """The document holds no list of email addresses or of telephone numbers."""
    for what, matches, may_hold in (
        ("email addresses", emails, "@" in document.full_text),
        ("telephone numbers", phone_numbers, document.may_hold_number),
    ):
        places = _first_places(document, matches) if may_hold else {}
        if len(places) >= BULK_COUNT:
            yield Violation(
                at=next(iter(places.values())),
                cause=f"{len(places)} different {what} are in this document",
                cure="keep people in the knowledge graph; name a role where one is needed",
            )


def no_persons_telephone_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """No text holds a telephone number in international form that may be a person's."""
    if not document.may_hold_number or "+" not in document.full_text:
        return
    places = _first_places(document, persons_phone_numbers)
    # Many of them are a list, which another law reports.
    if places and len(_first_places(document, phone_numbers)) < BULK_COUNT:
        for at in dict.fromkeys(places.values()):
            cure = "name a role, or a page that has the number; one that is free of charge may stay"
            yield Violation(at=at, cause="this looks like the telephone number of a person", cure=cure)


def _first_places(document: DocumentTexts, matches: Callable[[str], Collection[str]]) -> dict[str, str]:
    """Map each different match in a document to the first place where it stands."""
    places: dict[str, str] = {}
    for at, text in document.texts:
        for match in matches(text):
            places.setdefault(match.lower(), at)
    return places


def writes_are_constrained(subject: Subject) -> Iterator[Violation]:
    """Every exposed capability that can change something bounds an argument besides the idempotency key."""
    for tool in subject.writing_tools:
        permission = tool.permission
        if any(
            bounds_value(constraint) for name, constraint in permission.arg_constraints.items() if name != _IDEMPOTENCY
        ):
            continue
        if not bounds_arguments(tool.adapter.schema_of(permission.capability) or {}):
            yield Violation(
                at=tool.at,
                cause=f"{tool.capability_id} may be called with any arguments",
                cure="bound one of its arguments in arg_constraints: max, enum, or a pattern that refuses something",
            )


def no_large_adapter_is_wholly_exposed(subject: Subject) -> Iterator[Violation]:
    """Of an adapter with more than eight capabilities, a pack exposes those its workflow needs, not all."""
    large = [(at, adapter) for at, adapter in subject.adapters.values() if len(adapter.capabilities) > _SMALL_ADAPTER]
    exposed: dict[str, set[str]] = defaultdict(set)
    for _, permission in subject.permissions if large else ():
        if permission.allow:
            exposed[permission.adapter_id].add(permission.capability)
    for at, adapter in large:
        if exposed[adapter.adapter_id] >= set(adapter.capabilities):
            yield Violation(
                at=f"{at}/capabilities",
                cause=f"all {len(adapter.capabilities)} capabilities of {adapter.adapter_id} are exposed",
                cure="remove the permissions that this workflow does not need",
            )


def the_tool_surface_is_small(subject: Subject) -> Iterator[Violation]:
    """A pack exposes at most 24 tools: large surfaces make planning unsafe, and escape review."""
    exposed = sum(permission.allow for _, permission in subject.permissions)
    if exposed > _MOST_TOOLS:
        yield Violation(
            at="/tooling_layer/permissions",
            cause=f"{exposed} tools are exposed",
            cure=f"split the pack by workflow, into packs of at most {_MOST_TOOLS} tools",
        )


TEXT_LAWS: tuple[Law[DocumentTexts], ...] = (
    Law(gate="security", code="secret_present", check=no_secret_is_here),
    Law(gate="security", code="random_text_present", check=no_text_is_as_random_as_a_secret),
    Law(gate="security", code="unseen_character_present", check=no_character_is_unseen, about="has_special_characters"),
    Law(gate="security", code="mixed_scripts_present", check=no_word_is_of_two_scripts, about="has_special_characters"),
    Law(gate="security", code="personal_number_present", check=no_official_number_is_here),
    Law(gate="security", code="people_listed", check=no_list_of_people_is_here),
    Law(gate="security", code="telephone_number_present", check=no_persons_telephone_is_here, severity="warning"),
)
"""The laws about texts, which hold for every document."""

LAWS: tuple[Law[Subject], ...] = (
    *TEXT_LAWS,
    Law(gate="security", code="endpoint_credentials", check=endpoints_carry_no_credentials),
    Law(gate="security", code="write_unconstrained", check=writes_are_constrained, about="writing_tools"),
    Law(gate="security", code="adapter_wholly_exposed", check=no_large_adapter_is_wholly_exposed),
    Law(gate="security", code="tool_surface_wide", check=the_tool_surface_is_small, severity="warning"),
)
