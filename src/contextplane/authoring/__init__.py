"""Author and validate.

This package holds the author's files, overlays, the validation gates and the version class of a change. A gate yields
all of its findings and changes nothing. The package is pure: it does not sign and does not publish. It may import
`policy`, `model` and `errors`, never its neighbour `trust`.
"""
