"""Executes governed runs. Today it only makes published versions compilable.

It compiles, calls and records through the packages below, and does none of it itself. It may import every package from
`registry` to `handoff` and those below.
"""
