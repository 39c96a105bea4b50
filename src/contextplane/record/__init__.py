"""Records runs: packs logs, and writes runs while they happen. Append-only.

It does not compare or judge what was recorded: `audit` and `evaluation` do. It may import `authoring`, `trust`,
`policy`, `ports`, `model` and `errors`, and none of the packages beside it.
"""
