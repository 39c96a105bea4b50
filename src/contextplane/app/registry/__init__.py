"""The registry as commands use it: keys, releases, pins, refreshes, audits."""
