"""`pack_meta`: the deployable identity of a pack, its tenant, and the defaults of its environment."""

from typing import Annotated

from msgspec import Meta

from contextplane.model.context_pack.terms import DataClassification, Identifier, Names, Semver, Sentence
from contextplane.model.value import Document

__all__ = ["EnvironmentDefaults", "Language", "PackMeta", "Tenant"]

# A language, what it is a part of, its script, its region, variants, extensions, what is private. Three letters are a
# part of a language and no country: those have two.
Language = Annotated[
    str,
    Meta(
        pattern=r"^[a-z]{2,3}(-[a-z]{3}){0,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?"
        r"(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(-[0-9A-WY-Za-wy-z](-[A-Za-z0-9]{2,8})+)*"
        r"(-x(-[A-Za-z0-9]{1,8})+)?\Z",
        description="BCP 47, such as en-IN.",
    ),
]


class Tenant(Document, frozen=True, omit_defaults=True):
    """Whose pack it is. Only the tenants in `shared_with` may run it besides."""

    tenant_id: Identifier
    name: Sentence
    shared_with: Names = ()


class EnvironmentDefaults(Document, frozen=True):
    """What holds where a request says nothing of it."""

    language: Language
    timezone: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}\Z")]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}\Z", description="ISO 4217.")]
    region: Identifier


class PackMeta(Document, frozen=True):
    """`pack_id@pack_version` never changes. `ttl_seconds` is for caches: it does not make anything mutable."""

    pack_id: Identifier
    pack_version: Semver
    tenant: Tenant
    environment_defaults: EnvironmentDefaults
    ttl_seconds: Annotated[int, Meta(ge=1, le=31_536_000)]
    data_classification: DataClassification
