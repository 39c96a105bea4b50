"""A registry in a store on disk, used as the command uses it: people with real keys, a clock that is told the time."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.registry.pins import PinResult, pin_version
from contextplane.app.registry.release import ActResult, record_draft
from contextplane.app.registry.release import publish as publish_artifact
from contextplane.app.registry.release import review as review_artifact
from contextplane.app.registry.release import sign as sign_artifact
from contextplane.app.registry.session import RegistrySession, SignedBy
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.model.keys import OWNER
from contextplane.ports.keys import SignatureCheck
from contextplane.ports.world import Clock as ClockPort
from contextplane.registry.artifact_state import REVIEW_ROLES
from contextplane.registry.events import Observed, Verdict
from contextplane.registry.streams import REGISTRY, version_stream
from contextplane.registry.writer import PlannedChange
from contextplane.trust.keyring_events import Change
from tests.unit.authoring.packs import CASES, EXAMPLE, with_changes
from tests.unit.trust.world import key_of

__all__ = [
    "CATALOG",
    "ENDPOINT",
    "ISSUER",
    "NARROWER",
    "OVERLAY",
    "PACK",
    "Clock",
    "Office",
    "code",
    "office",
    "version",
]

ISSUER = "tenant_acme_prod"
PACK = "ctxpack.support@1.0.0"
ROLES = {
    "author": ("log",),
    "arch": ("architecture", "log"),
    "sec": ("log", "security"),
    "dat": ("data", "log"),
    "eva": ("evaluation", "log", "support_ops"),
    "pub": ("log", "publisher"),
    "ops": ("environment:dev", "environment:prod", "environment:staging", "log", "operator"),
}
REVIEWERS = {"architecture": "arch", "security": "sec", "data": "dat", "evaluation": "eva", "support_ops": "eva"}
NARROWER = {"at": "/policy_layer/guardrails/redaction_rules/-", "value": "aadhaar"}
"""A change that asks for a minor version."""

CATALOG: dict[str, Any] = json.loads((CASES.parent / "decision_catalog" / "support.json").read_text(encoding="utf-8"))
ENDPOINT = {"at": "/tooling_layer/adapter_registry/adp_orders/endpoint_ref", "value": "internal://orders-staging"}
OVERLAY: Mapping[str, Any] = {
    "overlay_id": "ovl.staging",
    "overlay_version": "1.0.0",
    "base_pack_id": "ctxpack.support",
    "environment": "staging",
    "order": 10,
    "issuer": ISSUER,
    "changes": [ENDPOINT],
}


def version(number: str, *changes: Mapping[str, Any]) -> dict[str, Any]:
    """The full example after some changes, under a number."""
    document: dict[str, Any] = with_changes([*changes, {"at": "/pack_meta/pack_version", "value": number}])
    return document


def code(act: Callable[..., object]) -> str:
    with pytest.raises(ContextPlaneError) as error:
        act()
    return error.value.code


class Clock:
    def __init__(self) -> None:
        self.moment = datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        """A second later each time somebody looks."""
        self.moment += timedelta(seconds=1)
        return self.moment


class Office:
    """Everybody at one desk."""

    def __init__(self, desk: RegistrySession, clock: ClockPort) -> None:
        self.desk = desk
        self.clock = clock

    def change_keys(self, *changes: Change) -> None:
        self.desk.keys.change(changes, key_of("root"))
        self.desk.keys.__dict__.pop("keyring", None)

    def trust(self, name: str, *roles: str, issuer: str = ISSUER) -> None:
        roles = tuple(sorted({*roles, "log"}))  # whoever acts signs the log
        self.change_keys(self.desk.keys.key_trust(key_of(name).public_key, issuer, roles=roles))

    def by(self, name: str, reason: str = "as it should be") -> SignedBy:
        return SignedBy(key_of(name), reason)

    def record(
        self, value: Mapping[str, Any] = EXAMPLE, by: str = "author", catalogs: tuple[PackRef, ...] = ()
    ) -> ActResult:
        return record_draft(self.desk, copy.deepcopy(dict(value)), key_of(by), catalogs=catalogs)

    def review(self, target: str, by: str, role: str, verdict: Verdict = "approve") -> ActResult:
        return review_artifact(self.desk, target, role, verdict, self.by(by))

    def review_all(self, target: str, roles: Sequence[str] = REVIEW_ROLES) -> None:
        """Everybody approves. Who reviews as an evaluator is an owner of decisions as well, and counts for both."""
        for role in roles:
            if role != "support_ops" or "evaluation" not in roles:
                self.review(target, REVIEWERS[role], role)

    def sign(self, target: str, by: str = "pub") -> ActResult:
        return sign_artifact(self.desk, target, self.by(by))

    def publish(self, target: str, by: str = "pub") -> ActResult:
        return publish_artifact(self.desk, target, self.by(by))

    def release(self, value: Mapping[str, Any] = EXAMPLE) -> PackRef:
        """All the way from a document to a published version."""
        acted = self.record(value)
        target = str(acted.digest)
        self.review_all(target, acted.missing)
        self.sign(target)
        self.publish(target)
        return acted.ref

    def pin(self, environment: str, ref: PackRef | str, by: str = "ops") -> PinResult:
        return pin_version(self.desk, environment, PackRef.parse(str(ref)), self.by(by))

    def observe(self, ref: PackRef, environment: str) -> None:
        """A run there used it."""
        change = Observed(environment=environment, run="run_0123456789abcdef")
        planned = PlannedChange(stream=version_stream(ref), change=change, reason="a run used it")
        self.desk.act(key_of("author"), [planned])

    def stage(self, ref: PackRef | str) -> str:
        with self.desk.read() as reader:
            return reader.version(PackRef.parse(str(ref))).stage

    def artifact_stage(self, digest: Digest) -> str:
        with self.desk.read() as reader:
            return reader.artifact(digest).stage

    def base(self, environment: str, base_id: str = "ctxpack.support") -> str:
        with self.desk.read() as reader:
            return str(reader.pins(environment, base_id).base)

    def streams(self) -> dict[str, int]:
        with self.desk.platform.catalog.read() as view:
            names = [*view.streams.names(REGISTRY), *view.streams.names("tree/")]
            return {name: view.streams.head(name) for name in names}


@contextmanager
def desk_in(settings: Settings, clock: ClockPort, check: SignatureCheck | None = None) -> Iterator[Office]:
    """A session of its own in an existing store. `check`: what checks signatures, if not Ed25519 itself."""
    with open_platform(settings) as platform:
        platform.clock = clock
        yield Office(RegistrySession(KeyStore(platform, lambda: None, check=check)), clock)


@contextmanager
def office(folder: Path, database_url: str | None = None) -> Iterator[Office]:
    """A new registry in a folder; `root` owns its keyring."""
    settings = Settings(cwd=str(folder), database_url=database_url)
    init(settings)
    with desk_in(settings, Clock()) as here:
        here.trust("root", OWNER)
        trusting = here.desk.keys.key_trust
        here.change_keys(*(trusting(key_of(name).public_key, ISSUER, roles=roles) for name, roles in ROLES.items()))
        yield here
