#!/bin/sh
# Bring .venv to what the lock says: `setup.sh run` for the command, `setup.sh dev` for the tools as well.
#
# A stamp in .venv says for which lock and which interpreter it was set up; when it still fits, nothing is done and
# nothing is fetched. A set-up that was cut short left `.unfinished`, and the next one starts anew. Called by make.
set -eu

kind=$1
cd -P "$(dirname "$0")/.."
here=$(pwd -P)
venv=.venv
stamp=$venv/.$kind-stamp
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV || true
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0

case $kind in
run) set -- -r requirements/build.txt -r requirements/run.txt ;;
dev) set -- -r requirements/dev.txt ;;
*) echo "setup: '$kind' is neither run nor dev" >&2 && exit 2 ;;
esac

fail() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

# What the stamp of a kind must say.
wanted() {
    case $1 in
    run) cat requirements/build.txt requirements/run.txt pyproject.toml ;;
    dev) cat requirements/dev.txt pyproject.toml ;;
    esac | cksum
    cat "$venv/pyvenv.cfg"
}

runs() {
    [ "$("$1" -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null)" = True ]
}

# An environment that works in this place: finished, not moved, its interpreter still the version it was made for.
usable() {
    [ -f "$venv/pyvenv.cfg" ] && [ ! -e "$venv/.unfinished" ] && runs "$venv/bin/python" &&
        "$venv/bin/python" -c 'import os, sys
sys.exit(not os.path.isdir(sys.prefix + "/lib/python%d.%d/site-packages" % sys.version_info[:2]))' &&
        { [ "$(cat "$venv/.place" 2>/dev/null)" = "$here" ] || grep -qsF -- "$here/$venv" "$venv/bin/activate"; }
}

can_make_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Sets $python. What PYTHON names is taken or refused, never replaced by something else.
find_python() {
    python=
    if [ -n "${PYTHON:-}" ]; then
        runs "$PYTHON" || fail "PYTHON is '$PYTHON', which is not a working Python 3.11 or newer"
        python=$PYTHON
    else
        for candidate in python3.11 python3.12 python3.13 python3 python; do
            runs "$candidate" || continue
            # Debian has interpreters that cannot make an environment; another one on PATH may.
            if can_make_venv "$candidate"; then
                python=$candidate
                break
            fi
            python=${python:-$candidate}
        done
    fi
    [ -n "$python" ] ||
        fail "no Python 3.11 or newer on PATH" "install one, or name it: make PYTHON=/path/to/python3.11"
    # The interpreter behind it, for it may be the one in the .venv that is about to go.
    python=$("$python" -c 'import sys; print(getattr(sys, "_base_executable", None) or sys.executable)')
}

make_venv() {
    find_python
    # The interpreter goes first, so that a removal cut short leaves nothing that looks usable.
    rm -f "$venv/bin/python"
    rm -rf "$venv"
    mkdir "$venv"
    : >"$venv/.unfinished"
    if command -v uv >/dev/null 2>&1 &&
        uv venv --quiet --no-project --allow-existing --python "$python" "$venv" 2>/dev/null; then
        return
    fi
    can_make_venv "$python" ||
        fail "'$python' cannot make a virtual environment: it has no ensurepip" \
            "install that (Debian, Ubuntu: python3-venv), or put uv on PATH, or name another Python: make PYTHON=..."
    "$python" -m venv "$venv"
}

# uv is faster. pip is always there, and knows how this machine reaches its registry.
with_uv() {
    command -v uv >/dev/null 2>&1 &&
        uv pip install --quiet --python "$venv/bin/python" --require-hashes --compile-bytecode "$@" 2>/dev/null &&
        uv pip install --quiet --python "$venv/bin/python" --offline --no-deps --no-build-isolation --editable .
}

# In two processes: for the second, pip is the one of the lock.
with_pip() {
    { "$venv/bin/python" -c 'import pip' 2>/dev/null || "$venv/bin/python" -m ensurepip >/dev/null; } &&
        "$venv/bin/python" -m pip install -qq --require-hashes "$@" &&
        "$venv/bin/python" -m pip install -qq --no-index --no-deps --no-build-isolation --editable .
}

if usable && [ "$(cat "$stamp" 2>/dev/null)" = "$(wanted "$kind")" ]; then
    exit 0
fi

echo "== set up $venv ($kind)"
usable || make_venv
: >"$venv/.unfinished"
rm -f "$venv/.run-stamp" "$venv/.dev-stamp"
printf '%s\n' "$here" >"$venv/.place"
with_uv "$@" || with_pip "$@" || fail "the packages could not be installed; is a package registry within reach?"
[ "$kind" = run ] || wanted dev >"$venv/.dev-stamp"
wanted run >"$venv/.run-stamp"
rm "$venv/.unfinished"
