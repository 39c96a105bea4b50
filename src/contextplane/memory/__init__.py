"""What earlier runs taught.

The room for capture, candidates, review, promotion and recall. Nothing is promoted without a review, and it is not a
cache: what it holds has a source and a lifetime. It may import `authoring`, `trust`, `policy`, `ports`, `model` and
`errors`, and none of the rooms beside it. Nothing lives here yet.
"""
