"""What is known about the world of a run.

The room for ontologies, entities, snapshots, retrieval and reranking. It does not decide what a prompt holds, which
is the compiler's part, and it does not remember runs, which is memory's. It may import `authoring`, `trust`,
`policy`, `ports`, `model` and `errors`, and none of the rooms beside it. Nothing lives here yet.
"""
