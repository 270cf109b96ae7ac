#!/bin/sh
# Tests of deploy/nginx.conf need Debian's nginx: install it where that is possible, else say how.
set -eu

if command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing nginx"
    export DEBIAN_FRONTEND=noninteractive
    # It is no service here: the tests start it themselves, on ports of their own.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod +x $policy
        trap 'rm -f $policy' EXIT
    fi
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light; then
        exit 0
    fi >/dev/null
fi
echo "Tests of deploy/nginx.conf are skipped: they need nginx (as root: apt-get install nginx-light)"
