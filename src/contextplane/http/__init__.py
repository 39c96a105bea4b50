"""The HTTP surface.

The room for a thin server: parse, authenticate, one call, answer. It maps error families to statuses in one table and
holds no rule of its own. It may import `app` and what stands below that except `adapters`, and neither of the
surfaces beside it. Nothing lives here yet.
"""
