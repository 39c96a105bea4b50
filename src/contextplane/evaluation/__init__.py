"""Evaluates runs and releases. Today it has golden cases.

It measures and reports, and the caller decides what follows: a release gate is passed to the registry, which never
imports it. It may import `audit`, `runtime` and the packages below those.
"""
