"""The surface for coding agents, over the Model Context Protocol.

The room for a small loop on standard input and output: parse, one call, answer. It holds no rule of its own, and the
client side of the protocol is an adapter. It may import `app` and what stands below that except `adapters`, and
neither of the surfaces beside it; like `cli` it may import late. Nothing lives here yet.
"""
