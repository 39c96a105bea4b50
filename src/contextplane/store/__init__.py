"""Maintenance of objects and catalog: index, status, fsck, gc, rebuild, and looking up packs.

It is written against the ports and knows neither files nor SQL; those are adapters. It may import `authoring`, `trust`,
`policy`, `ports`, `model` and `errors`, and none of its sibling packages.
"""
