"""The demo of `ctx demo`: its documents, its logs and the tour through them.

It needs no network and no key. It is an example, never a dependency: only the command that shows it imports it. It may
import what `app` may.
"""
