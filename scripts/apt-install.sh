#!/bin/sh
# Install Debian packages where this user may; otherwise say what to run, and end with 3.
# Each argument is one need; 'first|second' takes the second where the distribution lacks the first.
set -eu

refuse() {
    echo "$1" >&2
    echo "Run as root: apt-get update && apt-get install -y --no-install-recommends $wanted" >&2
    exit 3
}

wanted=$(echo "$*" | sed 's/|[^ ]*//g')
command -v apt-get >/dev/null || refuse "This is not a Debian or Ubuntu machine; install what corresponds to: $wanted."

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    refuse "Missing on this machine, and only root may install it: $wanted."
fi

apt_get() {
    # Another installation may be under way, as on a machine that has just been started.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@" </dev/null >&2
}

echo "Installing $wanted …" >&2
apt_get update || echo "The package lists could not be refreshed; going on with the old ones." >&2

packages=""
for need in "$@"; do
    package=${need%%|*}
    if ! apt-cache show "$package" >/dev/null 2>&1; then
        package=${need#*|}
    fi
    packages="$packages $package"
done

# Reduced images lack the manual pages' folder, without which Java's alternatives cannot be set up.
$as_root mkdir -p /usr/share/man/man1
# shellcheck disable=SC2086  # a list of names
apt_get install -y --no-install-recommends $packages || refuse "The installation failed."
