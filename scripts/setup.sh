# Installs what the scripts need beyond Rust, and puts it on the path. Sourced, from the repository's root.

# One at a time in this tree: npm empties a folder that it installs to.
exec {setup}<scripts/setup.sh
flock "$setup"

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v valgrind >/dev/null || missing+=(valgrind)
command -v promtool >/dev/null || missing+=(prometheus)
PATH=$PATH:/usr/sbin # where nginx is
command -v nginx >/dev/null || missing+=(nginx)
command -v redis-server >/dev/null || missing+=(redis-server)
command -v chromium-headless-shell >/dev/null || missing+=(chromium-headless-shell fonts-inter)
command -v strace >/dev/null || missing+=(strace)
command -v curl >/dev/null || missing+=(curl)
command -v systemd-analyze >/dev/null || missing+=(systemd)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)

# Debian starts a service as soon as it is installed, but where this file says no: the tests start their own.
install_without_starting() (
    as_root=$([[ $(id -u) == 0 ]] || echo sudo)
    policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        trap '$as_root rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null && $as_root chmod 755 "$policy" || exit
    fi
    $as_root apt-get update -qq &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
)
if ((${#missing[@]})); then
    install_without_starting "${missing[@]}" || exit 1
fi

[[ -x .venv/bin/pip ]] || python3 -m venv .venv || exit 1
.venv/bin/pip install --quiet --disable-pip-version-check \
    --requirement scripts/requirements.txt --requirement tests/sdk/requirements.txt \
    --requirement bindings/python/requirements.txt || exit 1
PATH=$PWD/.venv/bin:$PATH

# Anew only where the lock file is newer than what was installed.
for folder in tests/sdk/node bindings/node/test; do
    if [[ $folder/package-lock.json -nt $folder/node_modules/.package-lock.json ]]; then
        npm --prefix "$folder" ci >/dev/null || exit 1
    fi
done
exec {setup}<&-
