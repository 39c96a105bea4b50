"""The table of verbs: what `ctx` can do. Loading a verb imports its module and no other."""

from functools import partial

from contextplane.cli.parser import Verb, VerbModule

__all__ = ["VERBS"]


_TABLE = {
    "Start": {
        "init": "create a store, or adopt an existing one",
        "demo": "run a guided tour in its own folder",
    },
    "Author": {
        "new": "write a context pack to start from",
        "lint": "check a context pack against the eight gates",
        "check": "run the release checklist",
        "schema": "print the JSON Schema of a document",
    },
    "Compile": {
        "compile": "compile what a model sees and may do",
        "why": "explain why an item is in or out",
        "test": "test a pack with tables of cases",
        "golden": "record and check golden cases",
    },
    "Trust": {
        "keys": "create keys, and manage who may sign",
        "witness": "cosign the registry, as a witness",
    },
    "Release": {
        "review": "approve or reject an artifact, in a role",
        "sign": "attach the issuer's signature",
        "publish": "publish a reviewed and signed artifact",
        "withdraw": "withdraw a draft that is not published",
        "pin": "pin a version, or set an alias",
        "unpin": "remove a pin or an alias",
        "promote": "promote the pinned version",
        "rollback": "pin the previous version again",
        "deprecate": "keep a version for replay only",
        "revoke": "block a version for new runs",
        "refresh": "manage refresh triggers and incidents",
        "packs": "list published versions, or drafts",
        "push": "copy a version into another store",
        "pull": "copy a version from another store",
    },
    "Record": {
        "pack": "store an agent's log as an execution pack",
        "fork": "create a draft from a recorded run",
        "finalize": "make a draft or recording an execution pack",
    },
    "Inspect": {
        "show": "show a run, a version or a handoff pack",
        "log": "list runs, or the history of one thing",
        "search": "find execution packs by their words",
        "status": "show what the store holds, and its size",
        "cat": "write an object's bytes to standard output",
        "verify": "verify a run, a file or the whole registry",
        "diff": "compare runs, context packs or handoff packs",
        "replay": "run a recorded run's tools again, and compare",
        "explain": "explain an error code, a law or a gate",
    },
    "Handoff": {
        "handoff": "list, read, write and export handoff packs",
    },
    "Serve": {
        "mcp": "serve handoff packs to coding agents over MCP",
    },
    "Maintain": {
        "fsck": "check every object and every reference",
        "gc": "remove old, unreferenced objects",
        "export": "write packs and their contents to one file",
        "import": "import packs from such a file, verified",
    },
    "Shell": {
        "completion": "print the completion script for a shell",
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
        case "schema":
            from contextplane.cli.verbs import schema as verb
        case "compile":
            from contextplane.cli.verbs import compile as verb
        case "why":
            from contextplane.cli.verbs import why as verb
        case "test":
            from contextplane.cli.verbs import test as verb
        case "golden":
            from contextplane.cli.verbs import golden as verb
        case "keys":
            from contextplane.cli.verbs import keys as verb
        case "witness":
            from contextplane.cli.verbs import witness as verb
        case "review":
            from contextplane.cli.verbs import review as verb
        case "sign":
            from contextplane.cli.verbs import sign as verb
        case "publish":
            from contextplane.cli.verbs import publish as verb
        case "withdraw":
            from contextplane.cli.verbs import withdraw as verb
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
        case "push":
            from contextplane.cli.verbs import push as verb
        case "pull":
            from contextplane.cli.verbs import pull as verb
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
