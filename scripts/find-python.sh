#!/bin/sh
# Print a Python that windrow runs on: $PYTHON, or the first new enough on the PATH.
set -eu

for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        command -v "$candidate"
        exit 0
    fi
done
echo "windrow needs Python 3.11 or newer and found none as: ${PYTHON:-python3, python3.11 … python3.14}." >&2
echo "Install one, or name it: make PYTHON=/path/to/python3.11 …" >&2
exit 3
