"""What happened is written down here, and never changed.

The room for the recorder, execution packs, step manifests, fault snapshots and decision records. It only appends; it
does not read back, compare or judge, which `audit` and `evaluation` do. It may import `authoring`, `trust`, `policy`,
`ports`, `model` and `errors`, and none of the rooms beside it.
"""
