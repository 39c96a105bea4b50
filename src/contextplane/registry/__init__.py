"""Publish and pin.

The room for the lifecycle of released documents: publish, pin, promote, deprecate, revoke, and the resolution of a
reference to one digest. It does not validate and it does not sign; it asks the rooms that do. It may import
`authoring`, `trust`, `policy`, `ports`, `model` and `errors`, and none of the rooms beside it. It reads no clock.
"""
