"""Support for tests, ours and those of other packages.

Faults as data, strategies, and one law suite for each port that every adapter must pass. It is installed as an extra,
and no other package of contextplane imports it. It may import `app`, `adapters` and everything below those,
and none of the surfaces.
"""
