"""The composition root.

From settings to a platform: the one room that knows both the ports and the adapters chosen for them, and the one that
reads the environment. The platform holds ports and has no behaviour of its own; the rules stay in the rooms below. It
may import everything but the surfaces, and it may import late, inside functions, so that a command loads only what it
needs.
"""
