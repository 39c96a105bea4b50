"""The subjects of a registry, each folded from its verified stream: drafts, versions, pins and others.

How a stream is read and verified: `stream_reader.py`.
"""

from functools import partial

from msgspec.structs import replace

from contextplane.model.ids import Digest, PackRef
from contextplane.registry.artifact_state import ArtifactState, DraftsState
from contextplane.registry.pin_state import AliasState, EnvironmentState, PinState
from contextplane.registry.stream_reader import StreamReader
from contextplane.registry.streams import (
    aliases_stream,
    artifact_stream,
    digests_of,
    drafts_stream,
    environment_stream,
    pins_stream,
    version_stream,
)
from contextplane.registry.version_state import VersionState

__all__ = ["RegistryReader"]


class RegistryReader(StreamReader):
    """Reads the registry of a catalog by a verified keyring. It lives as long as the view that it reads."""

    def drafts(self, ref: PackRef) -> tuple[Digest, ...]:
        """The digests that were listed as drafts of a version."""
        return self.fold(drafts_stream(ref), DraftsState(ref=ref)).digests

    def candidates(self, ref: PackRef) -> tuple[Digest, ...]:
        """The digests of all drafts of a version that were not withdrawn, from signed events alone."""
        listed = self.drafts(ref)
        if self.has_first_format:
            # Drafts of the first format are in no list: every history is looked at.
            listed = tuple(dict.fromkeys((*listed, *digests_of(self))))
        states = map(self.artifact, listed)
        return tuple(state.digest for state in states if state.ref == ref and state.stage != "withdrawn")

    def artifact(self, digest: Digest) -> ArtifactState:
        """The state of a digest, with all rotations of keys applied."""
        state = self.fold(artifact_stream(digest), ArtifactState(digest=digest))
        return state.after_rotations(partial(self.keyrings.rotated_keys, seq=self.keyrings.now.seq))

    def version(self, ref: PackRef) -> VersionState:
        """The state of a version; without a publication if it was never published."""
        return self.fold(version_stream(ref), VersionState(ref=ref))

    def aliases(self, base_id: str) -> AliasState:
        return self.fold(aliases_stream(base_id), AliasState(base_id=base_id))

    def environment(self, name: str) -> EnvironmentState:
        return self.fold(environment_stream(name), EnvironmentState(environment=name))

    def pins(self, environment: str, base_id: str) -> PinState:
        """What is pinned now. Only the last event is read, so the cost does not grow with the history."""
        stream, state = pins_stream(environment, base_id), PinState(environment=environment, base_id=base_id)
        end, last = self.end(stream), self.last(stream)
        if last is not None:
            state = state.after_event(last)
        return state if end is None else replace(state, seq=end.seq, head=end.digest)
