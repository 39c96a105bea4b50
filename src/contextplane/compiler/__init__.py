"""Compiles a pack and a request into a compiled context. Pure: the same inputs give the same bytes.

`compile.py` has the table of stages and runs it: each stage is a function from draft to draft, with a hash of what it
produced. `prompt.py` and `chat.py` write what a model is sent; `source.py`, `case.py` and `overrides.py` compile a case
from a file. It calls no tool and no model, and evaluates no policy of its own. It may import `authoring`, `policy`,
`model` and `errors`, no port, and none of the packages beside it.
"""
