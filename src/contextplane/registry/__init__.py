"""Publish and pin.

The lifecycle of released documents: publish, pin, promote, deprecate, revoke, and the resolution of a reference to one
digest. Validation is done by `authoring`, signatures by `trust`. It may import `authoring`, `trust`, `policy`, `ports`,
`model` and `errors`, and none of the packages beside it. It reads no clock.
"""
