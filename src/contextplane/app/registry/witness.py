"""Cosigns the newest checkpoint of a registry, as a witness.

Opening the registry proves that it continues what this client saw: the log begins as it did, and no end of a stream
went back. So a witness never cosigns two histories of one store.
"""

from typing import ClassVar

from contextplane.app.registry.session import RegistrySession, retry_conflicts
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.keys import Signer
from contextplane.registry.cosignatures import Witnesses, cosignature_event, count_witnesses, witness_keys
from contextplane.registry.log import last_time
from contextplane.registry.resign import RegistryEmpty
from contextplane.registry.streams import CHECKPOINTS, COSIGNATURES, LOG
from contextplane.store.staged_changes import StagedChanges
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.cosignature import sign_cosignature
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM

__all__ = ["NotAWitness", "WitnessResult", "witness_checkpoint"]


class NotAWitness(ContextPlaneError):
    """A cosignature by a key that has not the role `witness`, or is not valid."""

    code: ClassVar[str] = "not_a_witness"
    family: ClassVar[Family] = "refused"


class WitnessResult(Value, frozen=True):
    """A checkpoint that a witness cosigned.

    `new`: it had not done so before. `line`: the cosignature, as a line of a signed note.
    """

    checkpoint: Checkpoint
    time: Timestamp
    witnesses: Witnesses
    line: str = ""
    new: bool = False


@retry_conflicts
def witness_checkpoint(session: RegistrySession, signer: Signer) -> WitnessResult:
    """Cosign the newest checkpoint, if it continues what this client saw. Doing so again changes nothing.

    One that is far ahead of the clock is refused, as by every other act.
    """
    check, key_id = session.keys.check, signer.public_key.key_id
    with session.open() as (view, opened, _):
        keys = opened.reader.keyrings.now
        if opened.missing is not None:
            raise opened.missing
        newest = opened.newest
        if newest is None:
            raise RegistryEmpty("nothing was ever written to it", at=LOG)
        if signer.public_key not in witness_keys(keys, newest.time):
            raise NotAWitness(
                "this key is no witness of the newest checkpoint",
                at=key_id[:16],
                hint="an owner gives the role: ctx keys trust NAME --issuer ISSUER --role witness",
            )
        last_time(view.streams, newest, opened.reader.keyrings, check, session.keys.clock)  # refuses one of the future
        session.memory.save(newest, opened.voids)  # before it is signed: what was cosigned is never forgotten
        known = count_witnesses(view.streams, newest, keys, check)
        if key_id in known.key_ids:
            return WitnessResult(checkpoint=newest.checkpoint, time=newest.time, witnesses=known)
        time = max(session.keys.clock, newest.time).seconds
        cosignature = sign_cosignature(newest.checkpoint.text, signer=signer, time=time)
        staged = StagedChanges(view, unmoved=(LOG, CHECKPOINTS, KEYRING_STREAM))
        event = cosignature_event(newest.checkpoint.size, cosignature)
        staged.streams.append(COSIGNATURES, staged.streams.head(COSIGNATURES), [event])
        witnesses = count_witnesses(staged.streams, newest, keys, check)
    staged.commit(session.platform.catalog)
    return WitnessResult(
        checkpoint=newest.checkpoint, time=newest.time, witnesses=witnesses, line=cosignature.line, new=True
    )
