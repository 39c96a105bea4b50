"""Compiled contexts on the command line: what is compiled, the knobs, and what came of it on one screen."""
