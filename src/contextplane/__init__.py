"""contextplane: the context plane for AI agents.

It decides what an agent may know and do, proves what it knew and did, and hands that knowledge on. The public API is
`__version__` and the names in `contextplane.app.public.__all__`, each with an example in docs/python.md. They are
loaded when first used, so that `ctx --version` costs no more than starting Python. All other modules are private and
change without notice.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # importing `typing` for it would cost every command milliseconds; checkers know the name

if TYPE_CHECKING:
    from contextplane.app.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        from contextplane.app import public  # noqa: PLC0415  only users of the API load it

        if name in public.__all__:
            return getattr(public, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        from contextplane.app import public  # noqa: PLC0415

        return ["__version__", *public.__all__]
