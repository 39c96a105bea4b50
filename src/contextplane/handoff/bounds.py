"""How large the parts of a document may be, and what answers add to one."""

__all__ = ["MAX_SPAN", "MAX_TTL_MINUTES", "NAME_BYTES", "PATH_BYTES", "READ_ONLY"]

NAME_BYTES = (3, 120)
PATH_BYTES = 1024
MAX_SPAN = 2000
MAX_TTL_MINUTES = 5 * 365 * 24 * 60

READ_ONLY = (
    "schema_version",
    "id",
    "revision",
    "created_at",
    "updated_at",
    "expires_at",
    "ttl_remaining_seconds",
    "ttl_remaining_human",
    "ttl_remaining",
    "freshness_state",
    "digest",
    "validated_only",
    "moved_refs",
    "unanchored_refs",
)
"""What `get`, `write` and `ttl` add to a document; `write` takes no notice of it."""
