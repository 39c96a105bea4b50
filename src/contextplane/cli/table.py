"""The table of verbs: what `ctx` can do, and where it lives. Loading a verb imports it and no other."""

from contextplane.cli.verb import Verb, VerbModule

__all__ = ["VERBS"]


def _init() -> VerbModule:
    from contextplane.cli.verbs import init

    return init


def _status() -> VerbModule:
    from contextplane.cli.verbs import status

    return status


def _cat() -> VerbModule:
    from contextplane.cli.verbs import cat

    return cat


def _fsck() -> VerbModule:
    from contextplane.cli.verbs import fsck

    return fsck


def _gc() -> VerbModule:
    from contextplane.cli.verbs import gc

    return gc


def _demo() -> VerbModule:
    from contextplane.cli.verbs import demo

    return demo


def _completion() -> VerbModule:
    from contextplane.cli.verbs import completion

    return completion


VERBS = (
    Verb(name="init", group="Begin", summary="make a store here, or adopt the one that is here", load=_init),
    Verb(name="demo", group="Begin", summary="watch the product at work in a folder of its own", load=_demo),
    Verb(
        name="status", group="Look", summary="what this store holds, how large it is, which schema it has", load=_status
    ),
    Verb(name="cat", group="Look", summary="write an object's bytes to standard output", load=_cat),
    Verb(name="fsck", group="Keep", summary="re-hash every object, resolve every reference", load=_fsck),
    Verb(name="gc", group="Keep", summary="remove what nothing refers to and what is old", load=_gc),
    Verb(
        name="completion", group="Shell", summary="print the completion script for bash, zsh or fish", load=_completion
    ),
)
