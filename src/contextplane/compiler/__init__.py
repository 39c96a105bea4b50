"""From a pack and a request to a compiled context.

`stages.py` is the table: one file for each stage, every stage a function from draft to draft, with a hash of what it
produced. `compile.py` runs it, `prompt.py` and `chat.py` write what a model is sent. It is pure: whatever it needs is
handed in as a value, and the same inputs give the same bytes. It calls no tool and no model, and evaluates no policy of
its own. It may import `authoring`, `policy`, `model` and `errors`, no port, and none of the rooms beside it.
"""
