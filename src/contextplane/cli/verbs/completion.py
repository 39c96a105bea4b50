"""Print the completion script for a shell.

  bash    put eval "$(ctx completion bash)" into ~/.bashrc
  zsh     write it to _ctx in a folder of fpath, such as ~/.zfunc
  fish    write it to ~/.config/fish/completions/ctx.fish

The script completes verbs, options and their values: files, references of runs and handoff packs, published versions,
ids of packs, environments, names of keys, error codes and kinds of documents. It asks ctx for the names of the store
that the working folder is in. Names of a catalog in PostgreSQL are not completed.

Examples:
  ctx completion bash    print the script for bash
"""

import os
import sys
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "shells")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(args: Namespace, output: CommandOutput) -> int:
    with open(os.path.join(_FOLDER, f"ctx.{args.shell}"), encoding="utf-8") as file:
        script = file.read().replace("@VERBS@", _VERBS[args.shell](args.summaries))
    output.answer({"shell": args.shell, "script": script.removesuffix("\n")})
    if not output.json:
        sys.stdout.write(script)
    return OK


def _zsh(summaries: dict[str, str]) -> str:
    return "\n".join(f"    '{name}:{_quote(summary)}'" for name, summary in summaries.items())


def _fish(summaries: dict[str, str]) -> str:
    line = "complete -c ctx -n __fish_use_subcommand -a {} -d '{}'"
    return "\n".join(line.format(name, summary.replace("'", r"\'")) for name, summary in summaries.items())


def _quote(text: str) -> str:
    return text.replace(":", "\\:").replace("'", "'\\''")


_VERBS = {"bash": " ".join, "zsh": _zsh, "fish": _fish}
"""How a script writes the verbs, each with its summary."""
