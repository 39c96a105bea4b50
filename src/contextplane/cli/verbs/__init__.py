"""The verbs of `ctx`, one file for each.

A verb declares its options, makes one call and prints the answer. No verb imports another, and none is imported
before it is the one that was asked for. It may import what `cli` may.
"""
