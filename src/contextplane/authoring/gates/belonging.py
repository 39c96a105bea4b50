"""What does not belong in a pack, and lives elsewhere: conversations, notes, code, records, repeated policy."""

import re
from collections.abc import Iterator

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject
from contextplane.authoring.texts import Texts

__all__ = ["LAWS", "TEXT_LAWS"]

_TURN = re.compile(
    r"^\s*(?:\*\*)?(?:user|assistant|human|customer|agent|system|bot)(?:\*\*)?\s*:", re.IGNORECASE | re.MULTILINE
)
_TURNS = 2
_NOTE = re.compile(
    r"\b(?:TODO|FIXME|XXX)\b|\b(?i:notes? to self|remove this (?:again )?(?:after|before|once|when)|as discussed with"
    r"|ignore this (?:for now|until)|(?:this is a|just a) (?:temporary|quick) (?:hack|fix|workaround))\b"
)
_CODE = re.compile(
    r"^\s*(?:async )?def \w+\(|^\s*class \w+(?:\(.*\))?:|^\s*from [\w.]+ import \w|^\s*import \w+(?:\.\w+)+;?\s*$"
    r"|\bfunction\s*\w*\([^)]*\)\s*\{|^\s*(?:const|let|var) \w+ = |=>\s*\{|^#!/|^\s*#include <"
    r"|\bpublic (?:static|class)\b|\bSELECT\b.+\bFROM\b|\bINSERT INTO\b|\bDELETE FROM\b|<script\b|\bcurl -",
    re.MULTILINE,
)
_NOTE_WORDS = ("todo", "fixme", "xxx", " to self", "remove this", "as discussed", "ignore this", "temporary", "quick")
_CODE_WORDS = (
    *("def ", "class ", "import ", "function", "const ", "let ", "var ", "=>", "#!/", "#include", "public "),
    *("select", "insert into", "delete from", "<script", "curl -"),
)
_RECORD = re.compile(
    r"\b(?:customer|order|user|account|ticket|patient|invoice)(?:[ _-]?(?:id|no|number))?\s*[:=]"
    r"\s*[A-Za-z]{0,8}[_-]?[0-9]{2,}",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[:=]\s*[A-Za-z]{0,8}[_-]?[0-9]{2}")
"""What every record holds, and few other texts."""

_RECORDS = 2
_WORD = re.compile(r"[a-z]{3,}")
_COMMON = frozenset({"the", "and", "for", "not", "never", "before", "without", "any", "all", "must", "are", "was"})
_ALIKE = 0.6
_BUSINESS_TOKENS = 1500
_CHARACTERS_PER_TOKEN = 4


def no_conversation_is_here(document: Texts) -> Iterator[Broken]:
    """No text holds the turns of a conversation: state lives in the run and its transcript."""
    # Two turns take two lines.
    for at, text in document.texts_with(_TURN, "\n") if _has_lines(document) else ():
        if len(_TURN.findall(text)) >= _TURNS:
            yield Broken(at=at, cause="this holds turns of a conversation", cure="keep it in the run's transcript")


def _has_lines(document: Texts) -> bool:
    return document.all_text.count("\n") >= max(1, len(document.strings))


def no_operator_note_is_here(document: Texts) -> Iterator[Broken]:
    """No text is a note of the moment: notes live in the feedback store, with their provenance."""
    for at, text in document.texts_with(_NOTE, *_NOTE_WORDS):
        if found := _NOTE.search(text):
            yield Broken(
                at=at,
                cause=f"this reads like a note of the moment: {found[0]!r}",
                cure="file it as feedback, or make it a rule that was reviewed",
            )


def no_code_is_here(document: Texts) -> Iterator[Broken]:
    """No text is the code of an adapter: code lives in the service that endpoint_ref names."""
    for at, _ in document.texts_with(_CODE, *_CODE_WORDS):
        yield Broken(at=at, cause="this reads like code", cure="move it to the adapter's service")


def no_record_is_here(document: Texts) -> Iterator[Broken]:
    """No text holds records of customers or orders: records live in the knowledge graph."""
    found = [(at, len(_RECORD.findall(text))) for at, text in document.texts_near(_VALUE, _RECORD)]
    spread = sum(count for _, count in found) > _RECORDS
    for at, count in found:
        if spread or count >= _RECORDS:
            yield Broken(
                at=at,
                cause="this reads like records",
                cure="keep them in the knowledge graph, and refer to them by an evidence_ref",
            )


def business_context_is_short(subject: Subject) -> Iterator[Broken]:
    """The business context fits the bucket that it competes for."""
    business = subject.pack.business_context
    parts = (business.summary.what_we_do, *business.summary.who_we_serve, *business.summary.differentiators)
    size = sum(map(len, (*parts, *business.non_negotiables)))
    tokens = -(-size // _CHARACTERS_PER_TOKEN)
    if tokens > _BUSINESS_TOKENS:
        yield Broken(
            at="/business_context",
            cause=f"it takes about {tokens} tokens; its bucket has {_BUSINESS_TOKENS}",
            cure="keep what constrains, drop what advertises",
        )


def business_context_constrains(subject: Subject) -> Iterator[Broken]:
    """The business context states at least one constraint, not slogans alone."""
    if not subject.pack.business_context.non_negotiables:
        yield Broken(
            at="/business_context/non_negotiables",
            cause="nothing here constrains a run",
            cure="say what must never happen",
        )


def business_context_repeats_no_policy(subject: Subject) -> Iterator[Broken]:
    """No non-negotiable restates a rule: policy is evaluated, not read by a model."""
    rules = [(placed.rule.rule_id, _words(f"{placed.rule.rationale or ''}")) for placed in subject.rules]
    rules += [(placed.of.rule.rule_id, _words(placed.effect.reason or "")) for placed in subject.effects]
    for n, text in enumerate(subject.pack.business_context.non_negotiables):
        words = _words(text)
        for rule_id, said in rules:
            if words and said and len(words & said) / len(words | said) >= _ALIKE:
                yield Broken(
                    at=f"/business_context/non_negotiables/{n}",
                    cause=f"this says what the rule {rule_id} decides",
                    cure="leave it to the policy, or say why it matters",
                )
                break


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _COMMON


TEXT_LAWS: tuple[Law[Texts], ...] = (
    Law(gate="security", code="conversation_present", check=no_conversation_is_here),
    Law(gate="security", code="operator_note_present", check=no_operator_note_is_here),
    Law(gate="security", code="code_present", check=no_code_is_here),
    Law(gate="security", code="record_present", check=no_record_is_here),
)
"""What may stand in no text of any document."""

LAWS: tuple[Law[Subject], ...] = (
    *TEXT_LAWS,
    Law(gate="policy", code="business_context_long", check=business_context_is_short, severity="warning"),
    Law(gate="policy", code="business_context_idle", check=business_context_constrains, severity="warning"),
    Law(gate="policy", code="business_context_repeats", check=business_context_repeats_no_policy, severity="warning"),
)
