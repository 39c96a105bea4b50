"""Serve handoff packs to coding agents over MCP, and connect agents to this server.

  ctx mcp     serve on standard input and output. An MCP client starts it, and it ends when its input ends.
              'mcp-context-pack' is the same server.
  install     connect a client: add the server to its configuration, and the skill page to its skills. It shows the
              change and asks first. Everything else in the file stays, also comments.
  uninstall   take that back. An edited skill page stays.
  check       start the server as the client would, with the configured command and folder, and show what the client
              will see: tools, hints, tokens of the schemas. Without CLIENT, all that are configured.

CLIENT is claude-code, codex, gemini, cursor, vscode or opencode. --project (the default) changes the files of the
project, the nearest folder with .git or .ctx, here or above; --user those of your home. Links, files that are not
JSON or TOML, and another server with the name context-pack are refused, and nothing is changed.

The tools are input (list, get, write, ttl, delete) and output (list, read). Packs and recorded runs can also be read
as resources. The packs are in the first of these folders:
  - the one that CONTEXT_PACK_ROOT names
  - the store that CTX_DIR names
  - .agents/mcp/context_pack or .ctx, if it is a store: here, or in a folder above up to the root of the git repository;
    in a git worktree, then those of the main worktree
  - the nearest .ctx above
  - .agents/mcp/context_pack as a new store, in the root of the git repository; without one, here

Packs refer to code below the folder that holds the store, or below the root of the repository if the store is outside
of it. CONTEXT_PACK_SOURCE_ROOT names another folder.

Examples:
  ctx mcp                             serve until the input ends
  ctx mcp install codex               connect Codex in this project
  ctx mcp install claude-code --user  connect Claude Code in all projects
  ctx mcp check                       show what the connected clients will see
  ctx mcp uninstall codex             disconnect it
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]

_CLIENTS = ("claude-code", "codex", "gemini", "cursor", "vscode", "opencode")
_TAKES = {
    "install": frozenset({"yes", "dry_run", "no_skill"}),
    "uninstall": frozenset({"yes", "dry_run", "no_skill"}),
    "check": frozenset[str](),
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="ACTION", nargs="?", choices=tuple(_TAKES), help="the action; none to serve")
    parser.add_argument("client", metavar="CLIENT", nargs="?", choices=_CLIENTS, help="the client, as above")
    scope = parser.add_argument_group("actions").add_mutually_exclusive_group()
    scope.add_argument("--project", action="store_true", help="the files of this project (default)")
    scope.add_argument("--user", action="store_true", help="the files of your home, for all projects")
    changing = parser.add_argument_group("install and uninstall")
    changing.add_argument("--dry-run", action="store_true", help="show the change, and make none")
    changing.add_argument("--yes", action="store_true", help="do not ask")
    changing.add_argument("--no-skill", action="store_true", help="leave the skill page alone")


def run(args: Namespace, output: CommandOutput) -> int:
    _check(args)
    if args.what is None:
        from contextplane.mcp.main import run as serve

        return serve()
    from contextplane.cli.clients import change_client, check_clients

    return check_clients(args, output) if args.what == "check" else change_client(args, output)


def _check(args: Namespace) -> None:
    """Refuse arguments that belong to another action."""
    from contextplane.cli.parser import Usage

    hint = "see 'ctx mcp --help'"
    takes = _TAKES.get(args.what, frozenset())
    for name in ("yes", "dry_run", "no_skill"):
        if getattr(args, name) and name not in takes:
            action = args.what or "the server itself"
            raise Usage(f"argument --{name.replace('_', '-')}: not allowed with {action}", hint=hint)
    if args.what is None and (args.user or args.project):
        raise Usage("--user and --project need an action: install, uninstall or check", hint=hint)
    if takes and args.client is None:
        raise Usage(f"the following arguments are required: CLIENT (one of {', '.join(_CLIENTS)})", hint=hint)
