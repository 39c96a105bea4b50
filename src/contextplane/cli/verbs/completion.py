"""Print the completion script for a shell.

bash   eval "$(ctx completion bash)"                    in ~/.bashrc
zsh    ctx completion zsh > ~/.zfunc/_ctx               with ~/.zfunc in fpath
fish   ctx completion fish > ~/.config/fish/completions/ctx.fish
"""

import sys
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def run(args: Namespace, output: CommandOutput) -> int:
    import shtab

    script = shtab.complete(args.whole_parser(), shell=args.shell)
    output.answer({"shell": args.shell, "script": script})
    if not output.json:
        sys.stdout.write(script + "\n")
    return OK
