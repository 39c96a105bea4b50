"""The world of the demo.

Everything that `ctx demo` needs to show the product at work without a network or a key: its documents, its logs and
the tour through them. It is an example, never a dependency: nothing but the command that shows it imports it. It may
import what `app` may.
"""
