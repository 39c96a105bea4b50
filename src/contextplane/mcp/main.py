"""The entry points of `mcp-context-pack` and `ctx mcp`.

Until the first tool is called, nothing of the store is imported.
"""

import gc
import os
import sys

__all__ = ["console", "run"]

_USAGE = """usage: mcp-context-pack [--help] [--version]

An MCP server on standard input and output, the same as 'ctx mcp': context that coding agents pass to each other.

environment:
  CONTEXT_PACK_ROOT                   where the packs are (default: the store that CTX_DIR names; a store of the
                                      project, .agents/mcp/context_pack or .ctx; else a new store in
                                      .agents/mcp/context_pack)
  CONTEXT_PACK_SOURCE_ROOT            the folder that refs lead into (default: the folder that holds the store, or the
                                      root of the git repository)
  CONTEXT_PACK_LOG                    off, error, warn, info or debug
  CONTEXT_PACK_INITIALIZE_TIMEOUT_MS  how long to wait for a client (default: 20000)
  CONTEXT_PACK_MAX_PACK_BYTES         how large a pack may be (default: 524288)
  CONTEXT_PACK_MAX_SOURCE_BYTES       how large a file may be that a ref leads into (default: 2097152)
  CONTEXT_PACK_EXPIRED_GRACE_SECONDS  how long an expired pack can still be read (default: 900)
"""


_TERMINAL = """This is an MCP server: coding agents start it and talk to it over standard input and output. Connect one:
  ctx mcp install CLIENT    claude-code, codex, gemini, cursor, vscode or opencode
  ctx mcp check             show what the connected clients will see
  others                    {"mcpServers": {"context-pack": {"command": "ctx", "args": ["mcp"]}}}
Run these in the project. People read the same packs with 'ctx handoff list'. Press Ctrl-D to leave.
"""
"""Printed for a person who starts the server on a terminal."""


def console() -> None:
    """The console script."""
    sys.exit(_main(sys.argv[1:]))


def _main(argv: list[str]) -> int:
    if not argv:
        return run()
    if argv == ["--version"]:
        from contextplane import __version__

        sys.stdout.write(f"mcp-context-pack {__version__}\n")
        return 0
    is_help = argv == ["--help"]
    (sys.stdout if is_help else sys.stderr).write(_USAGE)
    return 0 if is_help else 2


def run() -> int:
    """Serve standard input until the client leaves; return the exit status."""
    at_terminal = _is_terminal()
    if at_terminal:
        sys.stderr.write(_TERMINAL)
        sys.stderr.flush()
    gc.disable()  # what is imported stays: looking through it for garbage would only delay the first answers
    from contextplane.app.settings import from_environment
    from contextplane.mcp.log import Log
    from contextplane.mcp.methods import Methods
    from contextplane.mcp.server import serve

    settings = from_environment()
    log = Log(settings.handoff.log)
    patience = float("inf") if at_terminal else settings.handoff.initialize_timeout_ms / 1000
    return serve(Methods(settings, log), log=log, patience=patience)


def _is_terminal() -> bool:
    """Whether a person is at the other end of standard input."""
    try:
        return os.isatty(0) and sys.stderr is not None
    except OSError:
        return False
