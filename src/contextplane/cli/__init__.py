"""The command `ctx`.

A thin surface, one file per verb: options in, one call, print, exit status. It holds no rule, no SQL and no path of
the store; text for people is written here and in the other surfaces only. Of the package it may import `app`, `model`
and `errors`, and `mcp`, which `ctx mcp` starts. It may import late, inside functions, so that no verb pays for another.
"""
