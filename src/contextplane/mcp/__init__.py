"""The server for coding agents, over the Model Context Protocol.

A small loop on standard input and output: parse a message, make one call, write the answer. It has no rule of its own,
and the client side of the protocol is an adapter. Of the package it may import `app`, `model` and `errors`. Like `cli`
it may import lazily, and until the first answer it does, because an agent waits for that.
"""
