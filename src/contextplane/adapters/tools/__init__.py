"""Tools that can be called again.

The `Tools` port on one worker process: the built-in tools (files, text search, HTTP, Python functions) and those of
plug-ins run in it, and it is ended when a call overruns its time. A tool gets its parameters and what its caller
allowed, and nothing else decides what it may reach. It may import `ports`, `policy`, `model`, `errors` and
`adapters.files`.
"""
