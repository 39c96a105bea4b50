"""Reads back what was recorded: verifies, compares, replays and explains it.

It writes nothing into the record it reads, and a replay gets its tools and its planner from the recording. It may
import `runtime` and the packages below that.
"""
