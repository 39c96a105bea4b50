"""The table of verbs: what `ctx` can do. Loading a verb imports its module and no other."""

from functools import partial

from contextplane.cli.parser import Verb, VerbModule

__all__ = ["VERBS"]


_TABLE = {
    "Begin": {
        "init": "make a store here, or adopt the one that is here",
        "demo": "watch the product at work in a folder of its own",
    },
    "Author": {
        "new": "begin a context pack from a small, complete one",
        "lint": "judge a context pack by the eight validation gates",
        "check": "run the release checklist",
    },
    "Compile": {
        "compile": "what a model would see and may do, for a request",
        "why": "why something is in or out, and what would flip it",
        "golden": "record what requests compile to, and check it later",
    },
    "Trust": {
        "keys": "make keys, and say who may sign for whom",
    },
    "Release": {
        "review": "approve or reject an artifact, in a role",
        "sign": "attach the issuer's signature to what was reviewed",
        "publish": "publish what was linted, reviewed and signed, for ever",
        "pin": "pin a version, or set an alias",
        "unpin": "take away what an environment pins",
        "promote": "say that what is pinned has proved itself",
        "rollback": "pin again, at once, what was pinned before",
        "deprecate": "let a version serve replay only",
        "revoke": "block a version for new execution",
        "refresh": "manage refresh triggers",
        "packs": "published versions, where they are pinned, and drafts",
    },
    "Record": {
        "pack": "store an agent's log as an execution pack",
        "fork": "begin a draft from a recorded run",
        "finalize": "make an edited draft or a recording an execution pack",
    },
    "Look": {
        "show": "what a run, a version or a handoff pack is made of",
        "log": "runs, newest first; or the history of a version",
        "search": "find execution packs by the words in them",
        "status": "what this store holds, how large it is, which schema it has",
        "cat": "write an object's bytes to standard output",
        "verify": "check a run, a file by its sidecar, or the whole registry",
        "diff": "compare two runs, two context packs, or two handoff packs",
        "replay": "run a recorded run's tools again and compare, step by step",
        "explain": "what an error code, a law or a gate means",
    },
    "Handoff": {
        "handoff": "list, read and export handoff packs, and what happened to them",
    },
    "Serve": {
        "mcp": "serve handoff packs to coding agents, over MCP",
    },
    "Keep": {
        "fsck": "re-hash every object, resolve every reference",
        "gc": "remove what nothing refers to and what is old",
        "export": "write packs and all they reach to one file",
        "import": "take packs from such a file, verified",
    },
    "Shell": {
        "completion": "print the completion script for bash, zsh or fish",
    },
}


def _load(name: str) -> VerbModule:  # noqa: C901, PLR0912, PLR0915  one branch for each verb
    """Import the module of a verb. The imports are written out, so that tools which read them see them."""
    verb: VerbModule
    match name:
        case "init":
            from contextplane.cli.verbs import init as verb
        case "demo":
            from contextplane.cli.verbs import demo as verb
        case "new":
            from contextplane.cli.verbs import new as verb
        case "lint":
            from contextplane.cli.verbs import lint as verb
        case "check":
            from contextplane.cli.verbs import check as verb
        case "compile":
            from contextplane.cli.verbs import compile as verb
        case "why":
            from contextplane.cli.verbs import why as verb
        case "golden":
            from contextplane.cli.verbs import golden as verb
        case "keys":
            from contextplane.cli.verbs import keys as verb
        case "review":
            from contextplane.cli.verbs import review as verb
        case "sign":
            from contextplane.cli.verbs import sign as verb
        case "publish":
            from contextplane.cli.verbs import publish as verb
        case "pin":
            from contextplane.cli.verbs import pin as verb
        case "unpin":
            from contextplane.cli.verbs import unpin as verb
        case "promote":
            from contextplane.cli.verbs import promote as verb
        case "rollback":
            from contextplane.cli.verbs import rollback as verb
        case "deprecate":
            from contextplane.cli.verbs import deprecate as verb
        case "revoke":
            from contextplane.cli.verbs import revoke as verb
        case "refresh":
            from contextplane.cli.verbs import refresh as verb
        case "packs":
            from contextplane.cli.verbs import packs as verb
        case "pack":
            from contextplane.cli.verbs import pack as verb
        case "fork":
            from contextplane.cli.verbs import fork as verb
        case "finalize":
            from contextplane.cli.verbs import finalize as verb
        case "show":
            from contextplane.cli.verbs import show as verb
        case "log":
            from contextplane.cli.verbs import log as verb
        case "search":
            from contextplane.cli.verbs import search as verb
        case "status":
            from contextplane.cli.verbs import status as verb
        case "cat":
            from contextplane.cli.verbs import cat as verb
        case "verify":
            from contextplane.cli.verbs import verify as verb
        case "diff":
            from contextplane.cli.verbs import diff as verb
        case "replay":
            from contextplane.cli.verbs import replay as verb
        case "explain":
            from contextplane.cli.verbs import explain as verb
        case "handoff":
            from contextplane.cli.verbs import handoff as verb
        case "mcp":
            from contextplane.cli.verbs import mcp as verb
        case "fsck":
            from contextplane.cli.verbs import fsck as verb
        case "gc":
            from contextplane.cli.verbs import gc as verb
        case "export":
            from contextplane.cli.verbs import export as verb
        case "import":
            from contextplane.cli.verbs import import_ as verb
        case "completion":
            from contextplane.cli.verbs import completion as verb
        case _:
            raise KeyError(name)
    return verb


VERBS = tuple(
    Verb(name=name, group=group, summary=summary, load=partial(_load, name))
    for group, verbs in _TABLE.items()
    for name, summary in verbs.items()
)
