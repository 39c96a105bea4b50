"""Judging runs and releases.

The room for evaluators, scorecards, golden sets, release gates and metrics. It measures and reports; whoever asked
decides what follows, so a release gate is handed to the registry and never imported by it. It may import `audit`,
`runtime` and what stands below those. Golden cases are here; the rest is not built yet.
"""
