"""The HTTP surface.

The room for a thin server: parse, authenticate, one call, answer. It maps error families to statuses in one table and
holds no rule of its own. Of the package it may import `app`, `model` and `errors`, and neither of the surfaces beside
it. Nothing lives here yet.
"""
