#!/bin/sh
# Make .venv, or bring it up to date: windrow itself, editable, and exactly the versions of constraints.txt.
set -eu
cd "$(dirname "$0")/.."

python=$(scripts/find-python.sh)

# Debian ships venv without the part that puts pip into it.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    scripts/apt-install.sh "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv|python3-venv"
fi

# An environment whose Python is gone, or that was left half made, is made anew.
if ! .venv/bin/pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear .venv
fi

pip() {
    .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"
}

# The pinned build tools first and no isolation after, so that nothing unpinned takes part in a build.
pip install --quiet --constraint constraints.txt pip setuptools
pip install --no-build-isolation --constraint constraints.txt --editable '.[all,dev]'
pip check

# Compiled kernels are kept beside the code, where Spark's workers find them too; without this the first queries wait.
.venv/bin/python scripts/compile-kernels.py
