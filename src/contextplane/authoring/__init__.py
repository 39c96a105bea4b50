"""Author and validate.

The room for drafts, overlays, the validation gates and the version class of a change. A gate yields findings, all of
them, and changes nothing. It is pure, it does not sign and it does not publish. It may import `policy`, `model` and
`errors`, never its neighbour `trust`.
"""
