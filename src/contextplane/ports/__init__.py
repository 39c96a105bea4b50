"""What the product needs from the world, as protocols.

Objects, catalog, sources, clock, ids, signer, tools: each protocol is small, and its docstring is the law that one
suite in `testing` proves for every adapter. It holds no implementation and no default. It may import `model` and
`errors`.
"""
