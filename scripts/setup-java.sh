#!/bin/sh
# Make sure that there is a Java for Spark, and print its home. Needs no virtual environment.
set -eu
cd "$(dirname "$0")/.."

python=$(scripts/find-python.sh)

# -P keeps the script's own folder off the path, where a module could hide one of Python's.
find_java() {
    PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 "$python" -P src/windrow/execution/java.py
}

if find_java; then
    exit 0
fi
scripts/apt-install.sh 'openjdk-17-jre-headless|default-jre-headless'
find_java
