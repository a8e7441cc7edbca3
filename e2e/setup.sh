#!/bin/sh
# Installs what the end-to-end tests need: tmux and a netcat that knows local
# sockets if it can, and the pinned Node and Pi of npm/package-lock.json. Safe
# to run again; quiet when all is there.
set -eu
cd "$(dirname "$0")/npm"

have() { command -v "$1" >/dev/null 2>&1; }

packages=
have tmux || packages=tmux
have nc || packages="$packages netcat-openbsd"
if [ -n "$packages" ] && have apt-get && [ "$(id -u)" = 0 ]; then
	echo "e2e: installing" $packages
	log=$(mktemp)
	# Package lists may be missing (a fresh container) or too old.
	apt-get install -y -q $packages >"$log" 2>&1 ||
		{ apt-get update -q && apt-get install -y -q $packages; } >"$log" 2>&1 ||
		cat "$log" >&2
	rm -f "$log"
fi

missing=
for tool in git npm tmux; do
	have "$tool" || missing="$missing $tool"
done
if [ -n "$missing" ]; then
	echo "e2e: install these first:$missing" >&2
	exit 1
fi

# The stamp is written last, so an interrupted install is done again.
stamp=node_modules/.switchboard-e2e
if [ ! -e "$stamp" ] || [ -n "$(find package-lock.json -newer "$stamp")" ]; then
	echo "e2e: installing Node and Pi"
	# The machine's own Node may be too old for Pi; that is why we pin one, so
	# npm's warnings about it are noise.
	npm ci --loglevel=error >&2
	touch "$stamp"
fi
