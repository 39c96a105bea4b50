"""Compiling as commands use it: cases, sources, golden cases, explanations."""
