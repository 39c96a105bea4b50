"""The laws about content that belongs elsewhere: conversations, notes, code, records, repeated policy."""

import re
from collections.abc import Iterator

from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import Subject
from contextplane.authoring.texts import DocumentTexts
from contextplane.policy.regex_safety import lazy_regex

__all__ = ["LAWS", "TEXT_LAWS"]

_SPEAKER = "user|assistant|human|customer|client|caller|agent|operator|advisor|system|bot"
# A turn begins a line, follows the end of a sentence, or has a capital: `tone for the agent: calm` is none.
_TURN = lazy_regex(
    rf"(?:^[ \t]*(?:[-*>]{{1,2}}[ \t]?)?(?P<line>(?i:{_SPEAKER}))"
    rf"|(?:(?<=[.!?|/]\s)|(?<=[.!?][\"')]\s))(?i:{_SPEAKER})|(?<=\s)(?:{_SPEAKER.title()}|{_SPEAKER.upper()}))"
    r"(?:\*\*)?[ \t]{0,2}:(?:\*\*)?\s*[^\s:]",
    re.MULTILINE,
)
_NAME = lazy_regex(r"[A-Za-z]+")
_TURNS = 2
# A mark stands for a note at the beginning, in brackets, or with a colon; `TODO lists` and `XXX-XX-1234` are none.
_NOTE = lazy_regex(
    r"(?:^|[\[(#/*]\s?)(?:TODO|FIXME|XXX)\b(?![-X]|\s+(?:lists?|items?|apps?|notes?|comments?|markers?|entries)\b)"
    r"|\b(?:TODO|FIXME|XXX)(?:\s?[:(\]]|\s+-\s)"
    r"|\b(?:(?i:as discussed with) [A-Z]|(?i:notes? to self|ignore this (?:for now|until)"
    r"|remove this (?:again )?(?:after|before|once|when)|this is (?:just )?a (?:temporary|quick) (?:hack|fix)"
    r"|(?:remember|don't forget) to (?:remove|revert|undo) (?:this|it)\b"
    r"|(?:only|valid) until (?:tomorrow|next week|(?:mon|tues|wednes|thurs|fri)day)))",
    re.MULTILINE,
)
_NOTE_WORDS = (
    *("todo", "fixme", "xxx", "as discussed", " to self", "ignore this", "remove this", "a temporary", "a quick"),
    *("remember to", "forget to", "until"),
)
_CODE = lazy_regex(
    r"^\s*(?:async )?def \w+\(|^\s*class \w+(?:\(.*\))?:|^\s*from [\w.]+ import \w|^\s*import \w+(?:\.\w+)+;?\s*$"
    r"|\bfunction\s*\w*\([^)]*\)\s*\{|^\s*(?:const|let|var) \w+ = |=>\s*\{|^#!/|^\s*#include <"
    r"|\bpublic (?:static|class)\b|\bSELECT\b.+\bFROM\b|\bINSERT INTO\b|\bDELETE FROM\b|<script\b|\bcurl -",
    re.MULTILINE,
)
_CODE_WORDS = ("(", "=", "#", "<", "class ", "import ", "public ", "select", "insert into", "delete from", "curl -")
_RECORD = lazy_regex(
    r"\b(?:customer|client|order|user|account|ticket|patient|invoice|claim)(?:[ _-]?(?:id|no|number|ref))?[\"']?"
    r" {0,4}[:=] {0,4}[\"']?(?:[A-Za-z]{1,8}[_-]?[0-9]{2,}|[0-9]{4,})"
    r"(?![0-9]|[ -]?(?:digit|char|letter|day|hour|minute|second|item))",
    re.IGNORECASE,
)
_VALUES = tuple((sign, re.compile(rf"{sign}(?<=[a-z \"'].) {{0,4}}[\"']?[a-z]{{0,8}}[_-]?[0-9]{{2}}")) for sign in ":=")
"""A pattern that every record matches in small letters, and few other texts."""

_RECORDS = 2
_KEEP_OUT = "keep them in the knowledge graph, and refer to them by an evidence_ref"
_SEPARATORS = (",", ";", "\t", "|")
_COLUMNS = frozenset(
    (
        *("id", "name", "email", "e-mail", "phone", "address", "amount"),
        *("customer", "order", "user", "account", "ticket", "patient", "invoice", "claim"),
    )
)
_LETTERS = bytes(byte if byte >= ord("a") else ord(" ") for byte in range(256))
"""Keeps small letters and bytes that are not ASCII, and turns all else into a blank."""

_COMMON = frozenset(
    b"a all an and any are at be before by for if in is it must never no not of on or s t the to was without".split()
)
_ALIKE = 0.6
_BUSINESS_TOKENS = 1500
_CHARACTERS_PER_TOKEN = 4


def no_conversation_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """No text holds the turns of a conversation: state lives in the run and its transcript."""
    for at, text in document.sentences_with(_TURN, ":") if document.prose.count(":") >= _TURNS else ():
        if _is_conversation(text):
            yield Violation(at=at, cause="this holds turns of a conversation", cure="keep it in the run's transcript")


def _is_conversation(text: str) -> bool:
    """Whether a text has two turns on lines of their own, or two speakers."""
    turns = list(_TURN().finditer(text))
    speakers = {name[0].lower() for turn in turns if (name := _NAME().search(turn[0]))}
    return sum(turn["line"] is not None for turn in turns) >= _TURNS or len(speakers) >= _TURNS


def no_operator_note_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """No text is a note of the moment: notes live in the feedback store, with their provenance."""
    for at, text in document.sentences_with(_NOTE, *_NOTE_WORDS):
        if match := _NOTE().search(text):
            yield Violation(
                at=at,
                cause=f"this reads like a note of the moment: {match[0]!r}",
                cure="file it as feedback, or make it a rule that was reviewed",
            )


def no_code_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """No text is the code of an adapter: code lives in the service that endpoint_ref names."""
    for at, _ in document.sentences_with(_CODE, *_CODE_WORDS):
        yield Violation(at=at, cause="this reads like code", cure="move it to the adapter's service")


def no_record_is_here(document: DocumentTexts) -> Iterator[Violation]:
    """No text holds records of customers or orders: records live in the knowledge graph."""
    for at, text in document.texts if "\n" in document.full_text else ():
        if _is_table_of_records(text):
            yield Violation(at=at, cause="this reads like a table of records", cure=_KEEP_OUT)
    if any(sign in document.prose and value.search(document.prose) for sign, value in _VALUES):
        yield from _records(document)


def _is_table_of_records(text: str) -> bool:
    """Whether a text has several lines of as many columns as the first, which names columns of records."""
    lines = [line for line in text.splitlines() if line.strip()]
    for sign in _SEPARATORS if len(lines) > _RECORDS else ():
        columns = [column.strip(" \"'").lower() for column in lines[0].split(sign)]
        named = sum(column in _COLUMNS or column.endswith("_id") for column in columns)
        if named >= _RECORDS and len({line.count(sign) for line in lines}) == 1:
            return True
    return False


def _records(document: DocumentTexts) -> Iterator[Violation]:
    counts = [(at, len(_RECORD().findall(text))) for at, text in document.sentences_with(_RECORD, ":", "=")]
    spread = sum(count for _, count in counts) > _RECORDS
    for at, count in counts:
        if spread or count >= _RECORDS:
            yield Violation(at=at, cause="this reads like records", cure=_KEEP_OUT)


def business_context_is_short(subject: Subject) -> Iterator[Violation]:
    """The business context fits the bucket that it competes for."""
    business = subject.pack.business_context
    parts = (business.summary.what_we_do, *business.summary.who_we_serve, *business.summary.differentiators)
    size = sum(map(len, (*parts, *business.non_negotiables)))
    tokens = -(-size // _CHARACTERS_PER_TOKEN)
    if tokens > _BUSINESS_TOKENS:
        yield Violation(
            at="/business_context",
            cause=f"it takes about {tokens} tokens; its bucket has {_BUSINESS_TOKENS}",
            cure="keep what constrains, drop what advertises",
        )


def business_context_constrains(subject: Subject) -> Iterator[Violation]:
    """The business context states at least one constraint, not slogans alone."""
    if not subject.pack.business_context.non_negotiables:
        yield Violation(
            at="/business_context/non_negotiables",
            cause="nothing here constrains a run",
            cure="say what must never happen",
        )


def business_context_repeats_no_policy(subject: Subject) -> Iterator[Violation]:
    """No non-negotiable restates a rule: policy is evaluated, not read by a model."""
    texts = [(rule.rule.rule_id, rule.rule.rationale) for rule in subject.rules]
    texts += [(effect.of.rule.rule_id, effect.effect.reason) for effect in subject.effects]
    rules = [(rule_id, text) for rule_id, text in texts if text is not None]
    in_all = frozenset(_letters(" ".join([text for _, text in rules])))
    in_each: list[tuple[str, frozenset[bytes]]] = []
    for n, text in enumerate(subject.pack.business_context.non_negotiables):
        words = _words(text)
        if len(words & in_all) < _ALIKE * len(words):
            continue  # too few of its words are in all rules together
        in_each = in_each or [(rule_id, _words(rule)) for rule_id, rule in rules]
        for rule_id, others in in_each:
            both = len(words & others)
            if both and both >= _ALIKE * (len(words) + len(others) - both):
                yield Violation(
                    at=f"/business_context/non_negotiables/{n}",
                    cause=f"this says what the rule {rule_id} decides",
                    cure="leave it to the policy, or give the reason",
                )
                break


def _words(text: str) -> frozenset[bytes]:
    return frozenset(_letters(text)) - _COMMON


def _letters(text: str) -> list[bytes]:
    return text.lower().encode(errors="replace").translate(_LETTERS).split()


TEXT_LAWS: tuple[Law[DocumentTexts], ...] = (
    Law(gate="security", code="conversation_present", check=no_conversation_is_here),
    Law(gate="security", code="operator_note_present", check=no_operator_note_is_here),
    Law(gate="security", code="code_present", check=no_code_is_here),
    Law(gate="security", code="record_present", check=no_record_is_here),
)
"""The laws about texts, which hold for every document."""

LAWS: tuple[Law[Subject], ...] = (
    *TEXT_LAWS,
    Law(gate="policy", code="business_context_long", check=business_context_is_short, severity="warning"),
    Law(gate="policy", code="business_context_idle", check=business_context_constrains, severity="warning"),
    Law(gate="policy", code="business_context_repeats", check=business_context_repeats_no_policy, severity="warning"),
)
