"""The composition root: from settings to a platform.

The only package that knows both the ports and the adapters chosen for them, and the only one that reads the
environment. The platform holds ports and has no behaviour of its own; the rules stay in the packages below. It may
import everything but the surfaces. Imports inside functions are deliberate: a command loads only what it needs.
"""
