"""From a pack and a request to a compiled context.

The room for a table of stages, one file for each, every stage a function from draft to draft. It is pure: whatever it
needs is handed in, and the same inputs give the same bytes. It calls no tool and no model. It may import `authoring`,
`policy`, `model` and `errors`, no port, and none of the rooms beside it. Nothing lives here yet.
"""
