"""The table of verbs: what `ctx` can do, and where it lives. Loading a verb imports it and no other."""

from contextplane.cli.parser import Verb, VerbModule

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


def _pack() -> VerbModule:
    from contextplane.cli.verbs import pack

    return pack


def _show() -> VerbModule:
    from contextplane.cli.verbs import show

    return show


def _log() -> VerbModule:
    from contextplane.cli.verbs import log

    return log


def _search() -> VerbModule:
    from contextplane.cli.verbs import search

    return search


def _export() -> VerbModule:
    from contextplane.cli.verbs import export

    return export


def _import() -> VerbModule:
    from contextplane.cli.verbs import import_

    return import_


def _diff() -> VerbModule:
    from contextplane.cli.verbs import diff

    return diff


def _explain() -> VerbModule:
    from contextplane.cli.verbs import explain

    return explain


def _replay() -> VerbModule:
    from contextplane.cli.verbs import replay

    return replay


def _verify() -> VerbModule:
    from contextplane.cli.verbs import verify

    return verify


def _fork() -> VerbModule:
    from contextplane.cli.verbs import fork

    return fork


def _finalize() -> VerbModule:
    from contextplane.cli.verbs import finalize

    return finalize


def _handoff() -> VerbModule:
    from contextplane.cli.verbs import handoff

    return handoff


def _mcp() -> VerbModule:
    from contextplane.cli.verbs import mcp

    return mcp


def _new() -> VerbModule:
    from contextplane.cli.verbs import new

    return new


def _lint() -> VerbModule:
    from contextplane.cli.verbs import lint

    return lint


def _check() -> VerbModule:
    from contextplane.cli.verbs import check

    return check


def _keys() -> VerbModule:
    from contextplane.cli.verbs import keys

    return keys


def _review() -> VerbModule:
    from contextplane.cli.verbs import review

    return review


def _sign() -> VerbModule:
    from contextplane.cli.verbs import sign

    return sign


def _publish() -> VerbModule:
    from contextplane.cli.verbs import publish

    return publish


def _pin() -> VerbModule:
    from contextplane.cli.verbs import pin

    return pin


def _unpin() -> VerbModule:
    from contextplane.cli.verbs import unpin

    return unpin


def _promote() -> VerbModule:
    from contextplane.cli.verbs import promote

    return promote


def _deprecate() -> VerbModule:
    from contextplane.cli.verbs import deprecate

    return deprecate


def _revoke() -> VerbModule:
    from contextplane.cli.verbs import revoke

    return revoke


def _rollback() -> VerbModule:
    from contextplane.cli.verbs import rollback

    return rollback


def _packs() -> VerbModule:
    from contextplane.cli.verbs import packs

    return packs


def _refresh() -> VerbModule:
    from contextplane.cli.verbs import refresh

    return refresh


def _compile() -> VerbModule:
    from contextplane.cli.verbs import compile as compile_

    return compile_


def _why() -> VerbModule:
    from contextplane.cli.verbs import why

    return why


def _golden() -> VerbModule:
    from contextplane.cli.verbs import golden

    return golden


VERBS = (
    Verb(name="init", group="Begin", summary="make a store here, or adopt the one that is here", load=_init),
    Verb(name="demo", group="Begin", summary="watch the product at work in a folder of its own", load=_demo),
    Verb(name="new", group="Author", summary="begin a context pack from a small, complete one", load=_new),
    Verb(name="lint", group="Author", summary="judge a context pack by the eight validation gates", load=_lint),
    Verb(name="check", group="Author", summary="walk the list that a change of a context pack must pass", load=_check),
    Verb(name="compile", group="Compile", summary="what a model would see and may do, for a request", load=_compile),
    Verb(name="why", group="Compile", summary="why something is in or out, and what would flip it", load=_why),
    Verb(name="golden", group="Compile", summary="record what requests compile to, and check it later", load=_golden),
    Verb(name="keys", group="Trust", summary="make keys, and say who may sign for whom", load=_keys),
    Verb(name="review", group="Release", summary="approve or reject an artifact, in a role", load=_review),
    Verb(name="sign", group="Release", summary="attach the issuer's signature to what was reviewed", load=_sign),
    Verb(
        name="publish", group="Release", summary="publish what was linted, reviewed and signed, for ever", load=_publish
    ),
    Verb(name="pin", group="Release", summary="pin a version in an environment, or name it for people", load=_pin),
    Verb(name="unpin", group="Release", summary="take away what an environment pins", load=_unpin),
    Verb(name="promote", group="Release", summary="say that what is pinned has proved itself", load=_promote),
    Verb(name="rollback", group="Release", summary="pin again, at once, what was pinned before", load=_rollback),
    Verb(name="deprecate", group="Release", summary="let a version serve replay only", load=_deprecate),
    Verb(name="revoke", group="Release", summary="block a version for new execution", load=_revoke),
    Verb(name="refresh", group="Release", summary="what must be looked at again, and looking at it", load=_refresh),
    Verb(name="packs", group="Release", summary="published versions, where they are pinned, and drafts", load=_packs),
    Verb(name="pack", group="Record", summary="store an agent's log as an execution pack", load=_pack),
    Verb(name="fork", group="Record", summary="begin a draft from a recorded run", load=_fork),
    Verb(
        name="finalize", group="Record", summary="make an edited draft or a recording an execution pack", load=_finalize
    ),
    Verb(name="show", group="Look", summary="what a run, a version or a handoff pack is made of", load=_show),
    Verb(name="log", group="Look", summary="runs, newest first; or the history of a version", load=_log),
    Verb(name="search", group="Look", summary="find execution packs by the words in them", load=_search),
    Verb(
        name="status", group="Look", summary="what this store holds, how large it is, which schema it has", load=_status
    ),
    Verb(name="cat", group="Look", summary="write an object's bytes to standard output", load=_cat),
    Verb(
        name="verify",
        group="Look",
        summary="check a run, a file by its sidecar, or the whole registry",
        load=_verify,
    ),
    Verb(
        name="diff",
        group="Look",
        summary="compare two runs, two context packs, or two handoff packs",
        load=_diff,
    ),
    Verb(
        name="replay",
        group="Look",
        summary="run a recorded run's tools again and compare, step by step",
        load=_replay,
    ),
    Verb(name="explain", group="Look", summary="what an error code, a law or a gate means", load=_explain),
    Verb(
        name="handoff",
        group="Hand on",
        summary="list, read and export handoff packs, and what happened to them",
        load=_handoff,
    ),
    Verb(name="mcp", group="Serve", summary="serve handoff packs to coding agents, over MCP", load=_mcp),
    Verb(name="fsck", group="Keep", summary="re-hash every object, resolve every reference", load=_fsck),
    Verb(name="gc", group="Keep", summary="remove what nothing refers to and what is old", load=_gc),
    Verb(name="export", group="Keep", summary="write packs and all they reach to one file", load=_export),
    Verb(name="import", group="Keep", summary="take packs from such a file, verified", load=_import),
    Verb(
        name="completion", group="Shell", summary="print the completion script for bash, zsh or fish", load=_completion
    ),
)
