#!/bin/sh
# Tests of pages need Debian's chromium: install it where that is possible, else say how.
set -eu

# Playwright's own Node needs libatomic, which a small Debian has not.
if command -v chromium >/dev/null && ls /usr/lib/*/libatomic.so.1 >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing chromium"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core libatomic1; then
        exit 0
    fi >/dev/null
fi
echo "Tests of pages are skipped: they need chromium (as root: apt-get install chromium libatomic1)"
