"""The surface for coding agents, over the Model Context Protocol.

A small loop on standard input and output: parse, one call, answer. It holds no rule of its own, and the client side of
the protocol is an adapter. It may import `app` and what stands below that except `adapters`; like `cli` it may import
late, and until the first answer it does: an agent waits for that.
"""
