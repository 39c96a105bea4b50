"""A governed run, from invocation to decision.

The room for the rules of a run, which is a fold over its events, for the deterministic planner, and for the driver
that does the I/O around them. It compiles, calls and records through the rooms below and does none of it itself. It
may import every room from `registry` to `handoff` and what stands below those. So far it only turns a published
version into something that can be compiled.
"""
