"""What tests are made of, ours and those of others.

A simulated world, faults as data, builders, strategies, and one law suite for each port that every adapter must pass.
It is installed as an extra and no other room imports it. It may import `app`, `adapters` and everything below those,
and none of the surfaces.
"""
