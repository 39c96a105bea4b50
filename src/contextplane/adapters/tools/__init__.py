"""Tools that can be called again.

The `Tools` port on processes: our own tools (files, text search, HTTP) share one, and every call of a Python function
or a plug-in has one of its own, which is ended with it. A process confines itself before it calls a tool (`confine`):
files of the workspace to read, hosts that were allowed, no other process. It may import `ports`, `policy`, `model`,
`errors` and `adapters.files`.
"""
