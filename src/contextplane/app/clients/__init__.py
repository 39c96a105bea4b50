"""Connects coding agents to the MCP server: configuration files, skill folders, and a trial start."""
