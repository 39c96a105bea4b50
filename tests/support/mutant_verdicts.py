"""By what a mutant of a pack is noticed: the semantic diff, lint, or a case that the authors wrote."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec

from contextplane.app.packs.files import official_number
from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates.table import judge_pack
from contextplane.errors import ContextPlaneError
from contextplane.evaluation.case_run import run_table
from contextplane.policy.facts import Facts
from tests.support.condition_mutations import condition_mutations
from tests.support.pack_mutations import DECIDED, DECLARED, DROPPED, Mutation, conditions, mutations, rules
from tests.support.pack_powers import Powers, facts_around, gains
from tests.support.pack_tables import NAMES, pack_table, source_of
from tests.support.promise_mutations import PROMISES
from tests.support.tightening_mutations import TIGHTENINGS

__all__ = ["Mutant", "all_mutants", "is_counted", "is_missed", "means", "pack_requests"]

Json = Any
Means = Literal["diff", "lint", "cases"]
QUIET = frozenset({"metadata", "narrows", "wording", "locale", "endpoint"})
"""Effects by which a reviewer is not warned. All others are a minor or major version, or cannot be told."""


class Mutant(NamedTuple):
    """A mutation of one of the packs. A `candidate` counts only if some request gains by it."""

    pack: str
    mutation: Mutation
    candidate: bool

    @property
    def name(self) -> str:
        return f"{self.pack} {self.mutation.operator} {self.mutation.at}"

    @property
    def value(self) -> Json:
        return self.mutation.apply(pack_table(self.pack).file.file.value)


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant and every candidate, in a fixed order."""
    return tuple(_all_mutants())


def _all_mutants() -> Iterator[Mutant]:
    for name in NAMES:
        pack = pack_table(name).file.file.value
        for mutation in mutations(pack, (*DECLARED, *PROMISES)):
            yield Mutant(name, mutation, candidate=False)
        for mutation in (*mutations(pack, (*DECIDED, *TIGHTENINGS)), *condition_mutations(pack)):
            yield Mutant(name, mutation, candidate=True)


def is_missed(mutant: Mutant) -> bool:
    """Whether a mutant counts, and nothing notices it. What is cheap to find out comes first."""
    if _in_diff(mutant.pack, mutant.value) or not is_counted(mutant):
        return False
    return not _in_lint(mutant.pack, mutant.value) and not _in_cases(mutant.pack, mutant.value)


def is_counted(mutant: Mutant) -> bool:
    """Whether a mutant breaks a promise by its form, or some request may do more by it."""
    return not mutant.candidate or widens(mutant)


def means(mutant: Mutant) -> frozenset[Means]:
    """By what a mutant is noticed."""
    noticed: dict[Means, bool] = {
        "diff": _in_diff(mutant.pack, mutant.value),
        "lint": _in_lint(mutant.pack, mutant.value),
        "cases": _in_cases(mutant.pack, mutant.value),
    }
    return frozenset(name for name, is_noticed in noticed.items() if is_noticed)


def _in_diff(name: str, value: Json) -> bool:
    changes = compare_packs(pack_table(name).file.file.value, value)
    return any(change.undecided or change.effect not in QUIET for change in changes)


@cache
def _base_findings(name: str) -> Counter[str]:
    return _findings(pack_table(name).file.file.value)


def _findings(value: Json) -> Counter[str]:
    report = judge_pack(value, identify=official_number)
    return Counter(finding.code for finding in report.findings if finding.severity in {"error", "warning"})


def _in_lint(name: str, value: Json) -> bool:
    return bool(_findings(value) - _base_findings(name))


def _in_cases(name: str, value: Json) -> bool:
    return any(pack_table(name).failures(value))


# --- whether a candidate widens ---


@cache
def pack_requests(name: str) -> tuple[Facts, ...]:
    """The facts of every case of a pack that is not refused."""
    table = pack_table(name)
    outcomes = run_table(source_of(table.file.file.value), table.table_file, table.table, None)
    return tuple(outcome.draft.facts for outcome in outcomes if outcome.draft is not None)


@cache
def _base_powers(name: str) -> Powers:
    return Powers(pack_table(name).file.file.value)


def widens(mutant: Mutant) -> bool:
    """Whether some request may do more by this candidate. One that no run can be made of widens nothing."""
    value = mutant.value
    try:
        after = Powers(value)
    except (ContextPlaneError, msgspec.ValidationError):
        return False
    place = mutant.mutation.edits[0].path
    near = [
        condition
        for pack in (pack_table(mutant.pack).file.file.value, value)
        for path, condition in conditions(pack)
        if path[: len(place)] == place[: len(path)]
    ]
    values = [edit.value for edit in mutant.mutation.edits if edit.value is not DROPPED]
    requests = facts_around(_requests_for(mutant), [*near, *values])
    return gains(_base_powers(mutant.pack), after, requests)


def _requests_for(mutant: Mutant) -> list[Facts]:
    """The requests that the changed rule may apply to; for gates and guardrails, all."""
    place = mutant.mutation.edits[0].path
    rule = next((rule for path, rule in rules(mutant.value) if path == place[: len(path)]), None)
    named = rule["applies_to"]["intent"] if rule is not None else None
    intents = [named] if isinstance(named, str) else named
    return [facts for facts in pack_requests(mutant.pack) if intents is None or facts.intent in intents]
