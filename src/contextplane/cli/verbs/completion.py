"""Print the completion script for a shell.

  bash    put eval "$(ctx completion bash)" into ~/.bashrc
  zsh     write it to _ctx in a folder of fpath, such as ~/.zfunc
  fish    write it to ~/.config/fish/completions/ctx.fish

Examples:
  ctx completion bash    print the script for bash
"""

import sys
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(args: Namespace, output: CommandOutput) -> int:
    import shtab

    script = shtab.complete(args.whole_parser(), shell=args.shell)
    output.answer({"shell": args.shell, "script": script})
    if not output.json:
        sys.stdout.write(script + "\n")
    return OK
