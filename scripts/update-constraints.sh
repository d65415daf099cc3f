#!/bin/sh
# Write constraints.txt anew from what pyproject.toml asks for, resolved in an empty environment.
# With arguments, only those packages move:  scripts/update-constraints.sh zarr xarray
set -eu
cd "$(dirname "$0")/.."

python=$(scripts/find-python.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

: >"$work/kept.txt"
if [ $# -gt 0 ]; then
    moving=$(echo "$*" | tr ' ' '|')
    grep -v -i -E "^($moving)==" constraints.txt >"$work/kept.txt" || true
fi

"$python" -m venv "$work/venv"
pip() {
    "$work/venv/bin/python" -m pip --disable-pip-version-check --no-input "$@"
}
pip install --quiet --upgrade --constraint "$work/kept.txt" pip setuptools
pip install --quiet --no-build-isolation --constraint "$work/kept.txt" --editable '.[all,dev,peers,lance,samples]'
pip freeze --all --exclude-editable | grep -E '^[A-Za-z0-9._-]+==[^ ]+$' | LC_ALL=C sort -f >"$work/constraints.txt"
mv "$work/constraints.txt" constraints.txt
