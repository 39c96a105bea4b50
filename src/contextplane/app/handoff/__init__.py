"""Handoff packs as commands and the MCP server use them."""
