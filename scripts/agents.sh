#!/bin/sh
# Installs the pinned agents of tests/agents/package.json into a cache, once, and drives them over a loopback model.
# CTX_AGENTS names the cache. Without npm nothing is run.
set -eu

cache=${CTX_AGENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/contextplane/agents}
if ! command -v npm >/dev/null 2>&1; then
    echo "make agents: skipped, npm is not installed"
    exit 0
fi
mkdir -p "$cache"
if ! cmp -s tests/agents/package.json "$cache/installed.json"; then
    cp tests/agents/package.json "$cache/package.json"
    # No scripts of packages but one: opencode links the program for this machine.
    (cd "$cache" && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error)
    (cd "$cache/node_modules/opencode-ai" && node postinstall.mjs)
    cp tests/agents/package.json "$cache/installed.json"
fi
CTX_AGENTS=$cache exec .venv/bin/python -m pytest --quiet --numprocesses 0 "$@"
