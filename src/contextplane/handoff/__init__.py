"""What one agent passes on to another.

The room for findings anchored to real lines of code: write, finalize, read profiles, paging and freshness. It does
not run agents and it is no general document store. It may import `authoring`, `trust`, `policy`, `ports`, `model` and
`errors`, and none of the rooms beside it.
"""
