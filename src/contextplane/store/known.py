"""What whoever registers a pack knows of it already, and need not be found out again."""

from collections.abc import Collection, Mapping

from contextplane.model.execution import ManifestRefs
from contextplane.model.ids import Digest
from contextplane.model.manifest import Manifest
from contextplane.model.value import Value

__all__ = ["NOTHING", "Known"]


class Known(Value, frozen=True):
    """Contents that are recorded, and manifests that were read: what they say, and what they refer to."""

    recorded: Collection[Digest] = ()
    manifests: Mapping[Digest, Manifest] = {}
    refs: Mapping[Digest, ManifestRefs] = {}


NOTHING = Known()
