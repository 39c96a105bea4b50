"""Resolves versions of the registry by what this client trusts: nothing older than it saw or stale."""

from collections.abc import Iterator
from contextlib import contextmanager

from contextplane import __version__
from contextplane.app.registry.session import RegistrySession
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.registry.admit import admit
from contextplane.registry.claims import ClaimsJudgement, PublicationClaims
from contextplane.registry.pin_state import PinNotFound
from contextplane.registry.resolution import CatalogSnapshot, Resolution, ResolvedDocument, ResolveRequest, prove_event
from contextplane.registry.resolve import ResolveContext, resolve
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.compatibility import RuntimeCapabilities
from contextplane.trust.verify import TrustContext

__all__ = ["judge_claims", "judgement", "load_for_replay", "pinned_version", "resolve_request"]


def pinned_version(session: RegistrySession, pack_id: str, environment: str) -> PackRef:
    """Return the version of a pack that an environment pins. `PinNotFound` if it pins none."""
    with session.read() as reader:
        ref = reader.pins(environment, pack_id).base
    if ref is None:
        raise PinNotFound(
            f"{environment} pins no version of it",
            at=pack_id,
            hint=f"'ctx packs' lists versions and pins; 'ctx pin {environment} {pack_id}@X.Y.Z' pins one",
        )
    return ref


def load_for_replay(session: RegistrySession, ref: PackRef) -> ResolvedDocument:
    """Load a version as a replay gets it: published, reviewed, signed, the same bytes. Else refuse it.

    Each event is proved to be in the log at its place: a review after the publication does not count. Every claim of
    the publisher is judged again, whether this client did that before or not.
    """
    with _open_snapshot(session) as (snapshot, trust_context, _):
        admission = admit(
            ref, "replay", snapshot=snapshot, trust_context=trust_context, judgement=judgement(session, anew=True)
        )
        newest = snapshot.newest()
        if newest is not None:
            for event in admission.events:
                prove_event(event, newest.checkpoint, snapshot)
        if admission.failed:
            raise admission.failed[0]
        return admission.resolved


def resolve_request(
    session: RegistrySession, request: ResolveRequest, capabilities: RuntimeCapabilities, *, max_age: int | None
) -> Resolution:
    """Resolve the documents of an invocation, or refuse. The checkpoint is saved as the highest seen.

    `max_age`: how many seconds old the checkpoint may be for new traffic, as the settings say.
    """
    with _open_snapshot(session) as (snapshot, trust_context, seen):
        context = ResolveContext(
            trust_context=trust_context,
            capabilities=capabilities,
            judgement=judgement(session),
            seen=seen,
            max_age=max_age,
        )
        resolution = resolve(request, snapshot, context)
    session.memory.save_judged(resolution.judged)
    return resolution


def judgement(session: RegistrySession, *, anew: bool = False) -> ClaimsJudgement:
    """How a session judges what publishers claim; `anew`: also what it judged before."""
    return ClaimsJudgement(
        judge=judge_claims, gates=__version__, judged=frozenset[str]() if anew else session.memory.judged
    )


def judge_claims(claims: PublicationClaims) -> tuple[ContextPlaneError, ...]:
    """Judge the claims of a publication by the gates, which are loaded only if there is one to judge."""
    from contextplane.app.packs.files import official_number
    from contextplane.registry.rejudge import judge_publication

    return judge_publication(claims, identify=official_number)


@contextmanager
def _open_snapshot(session: RegistrySession) -> Iterator[tuple[CatalogSnapshot, TrustContext, Checkpoint | None]]:
    """Open the registry for reading; yield it with the trust context and the checkpoint seen before."""
    with session.open() as (_, opened, seen):
        session.memory.remember(opened)
        keys, check = opened.reader.keyrings.now, session.keys.check
        trust_context = TrustContext(keyring=keys, check=check, now=session.keys.clock)
        yield CatalogSnapshot(opened, session.platform.objects.get), trust_context, seen
