"""Implementations of the ports, one folder or file for each technology.

SQL, paths, sockets, the system clock and foreign protocols live here and nowhere else. Foreign exceptions end here:
callers see only errors of this package. Adapters know no stage of the product. They may import `ports`, `policy`,
`model` and `errors`; only `app` and `testing` import them.
"""
