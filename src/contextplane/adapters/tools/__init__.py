"""Tools that a replay can call again.

The `Tools` port on worker processes. Our own tools (files, text search, HTTP) share one process; every call of a Python
function or a plug-in has a process of its own, which ends with the call. A worker confines itself before it calls a
tool (`confine`): read access to the workspace, allowed hosts, no other process. It may import `ports`, `policy`,
`model`, `errors` and `adapters.files`.
"""
