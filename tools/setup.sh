#!/bin/sh
# Make the virtual environment and install what is pinned; nothing is done when nothing changed.
# Usage: sh tools/setup.sh PYTHON VENV REQUIREMENTS
set -eu

python=$1 venv=$2 requirements=$3
cd "$(dirname "$0")/.."
umask 022 # PostgreSQL's user reads the programs in there.

fail() {
    echo "a2a-host: $*" >&2
    exit 1
}

# What a requirements file asks for, as text: requirements.txt is a part of every one.
pins() {
    cat requirements.txt
    [ "$1" = requirements.txt ] || cat "$1"
}

exec 9<"$0"
flock 9 # Two at a time would install into each other.

command -v "$python" >/dev/null || fail "$python is missing: apt-get install python3 python3-venv"
if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print(*sys.version_info[:2], sep=".")' 2>/dev/null) || fail "$python does not run"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed, $python is $version"
    "$python" -c 'import venv, ensurepip' 2>/dev/null || fail "$python cannot make a virtual environment: apt-get install python3-venv"
    echo "Making $venv with Python $version"
    "$python" -m venv --clear "$venv" || fail "$venv could not be made"
fi

stamp=$venv/installed-$requirements
if ! pins "$requirements" | cmp -s - "$stamp"; then
    echo "Installing $requirements"
    # --no-deps: the file is complete. --no-compile: most of it is never imported, and Python compiles what is.
    "$venv/bin/python" -m pip install -qq --no-input --no-deps --no-compile -r "$requirements" ||
        fail "pip could not install $requirements (see above)"
    pins requirements.txt >"$venv/installed-requirements.txt"
    pins "$requirements" >"$stamp"
fi
