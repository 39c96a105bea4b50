"""Who may do what in a registry, and what it then serves: a plain model of docs/trust.md and docs/registry.md.

It uses nothing of the package. Keys, versions and environments are words. What a key without the right does changes
nothing here, and neither does what somebody edits.
"""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["ENVIRONMENTS", "RIGHTS", "HistoryEntry", "RegistryModel", "Rights"]

ENVIRONMENTS = ("prod", "staging")
REVIEWS = ("architecture", "security", "data", "evaluation")

RIGHTS = {
    "anybody": ("drafted", "linted", "draft_listed", "observed"),
    "author": ("draft_withdrawn",),
    "reviewer": ("reviewed",),
    "issuer": ("signed",),
    "publisher": ("name_claimed", "published", "deprecated", "revoked", "refresh_required", "refresh_reported"),
    "operator": (
        "pinned",
        "unpinned",
        "rolled_back",
        "rollback_ended",
        "promoted",
        "alias_set",
        "alias_dropped",
        "incident_opened",
        "incident_closed",
    ),
    "environment": ("environment_opened", "environment_protected"),
    "owner": (
        "key_trusted",
        "key_rotated",
        "key_revoked",
        "threshold_set",
        "owner_threshold_set",
        "witnesses_set",
        "store_sealed",
    ),
}
"""The kinds of events by the right that they take."""


class Rights:
    """The roles of every key that is valid now, by the issuer that gave them."""

    def __init__(self, grants: Mapping[str, Mapping[str, frozenset[str]]], issuer: str) -> None:
        self.grants = {key: dict(of_issuers) for key, of_issuers in grants.items()}
        self.issuer = issuer

    def may(self, key: str, kind: str, *, environment: str = "", role: str = "", author: str = "") -> bool:
        """Whether a key may make a change of what belongs to the issuer."""
        grants = self.grants.get(key)
        if not grants:
            return False
        ours, everywhere = grants.get(self.issuer, frozenset()), grants.values()
        is_owner = any("owner" in roles for roles in everywhere)
        publishes = bool({"publisher", "owner"} & ours)
        here = {"operator", f"environment:{environment}"}
        allowed = {
            "anybody": True,
            "issuer": self.issuer in grants,
            "reviewer": role in ours,
            "author": key == author or publishes,
            "publisher": publishes,
            "operator": is_owner or any(self._operates(name, roles, environment) for name, roles in grants.items()),
            "environment": is_owner or any(here <= roles for roles in everywhere),
            "owner": is_owner,
        }
        return next(allowed[right] for right, kinds in RIGHTS.items() if kind in kinds)

    def signs_log(self, key: str) -> bool:
        return any({"log", "owner"} & roles for roles in self.grants.get(key, {}).values())

    def _operates(self, issuer: str, roles: frozenset[str], environment: str) -> bool:
        reach = {f"tenant:{self.issuer}", *({f"environment:{environment}"} if environment else ())}
        return "operator" in roles and (issuer == self.issuer or bool(reach & roles))


class HistoryEntry(NamedTuple):
    """What an environment pins after an event, the key that pinned it, and the key of the event.

    `away`: the version that a rollback left.
    """

    pinned: str | None
    pinned_by: str
    by: str
    away: str = ""


class RegistryModel:
    """The stages of versions, what environments pin, aliases, refreshes, incidents, and the review of one draft."""

    def __init__(self, rights: Rights, stages: Mapping[str, str]) -> None:
        self.rights = rights
        self.stages = dict(stages)
        self.pins: dict[str, list[HistoryEntry]] = {name: [] for name in ENVIRONMENTS}
        self.revoked_keys: set[str] = set()
        self.opened: set[str] = set()
        self.aliases: dict[str, str] = {}
        self.refreshes: set[str] = set()
        self.incidents: set[tuple[str, str]] = set()
        self.draft: dict[str, str] | None = None
        self.is_signed = False

    # --- what is served ----------------------------------------------------------------------------------------------

    def pinned(self, environment: str) -> str | None:
        return self.pins[environment][-1].pinned if self.pins[environment] else None

    def is_doubtful(self, environment: str) -> bool:
        """Whether a key that is revoked from before that time pinned it, or made the last change."""
        last = self.pins[environment][-1:]
        return any({entry.pinned_by, entry.by} & self.revoked_keys for entry in last)

    def serves(self, environment: str, ref: str) -> bool:
        """Whether new runs get a version."""
        is_pinned = self.pinned(environment) == ref and not self.is_doubtful(environment)
        return is_pinned and self.stages.get(ref) == "published"

    # --- what is allowed, and what comes of it -----------------------------------------------------------------------

    def can_pin(self, environment: str, ref: str) -> bool:
        is_waiting = ref in self.refreshes and environment not in self.opened
        return self.stages.get(ref) == "published" and not is_waiting

    def pin(self, environment: str, ref: str, by: str) -> None:
        if self.pinned(environment) != ref or self.is_doubtful(environment):
            self.pins[environment].append(HistoryEntry(ref, by, by))

    def unpin(self, environment: str, by: str) -> None:
        self.pins[environment].append(HistoryEntry(None, "", by))

    def rollback_target(self, environment: str) -> str | None:
        """The last other version that can serve and that nobody rolled back from since it was pinned."""
        left: set[str] = set()
        for entry in reversed(self.pins[environment]):
            is_other = entry.pinned is not None and entry.pinned != self.pinned(environment)
            if entry.pinned and is_other and entry.pinned not in left and self.stages[entry.pinned] == "published":
                return entry.pinned
            left.add(entry.away)
        return None

    def roll_back(self, environment: str, by: str) -> None:
        target, away = self.rollback_target(environment), self.pinned(environment) or ""
        self.pins[environment].append(HistoryEntry(target, by, by, away))

    @property
    def is_reviewed(self) -> bool:
        return self.draft is not None and all(self.draft.get(role) == "approve" for role in REVIEWS)

    def review(self, role: str, verdict: str) -> None:
        assert self.draft is not None
        self.draft[role] = verdict
        self.is_signed &= self.is_reviewed
