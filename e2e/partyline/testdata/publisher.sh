#!/bin/sh
# A publisher that knows nothing but Touchtone's "Phonebook metadata":
#   publisher.sh put SESSION PUBLISHER < values.json
#   publisher.sh drop SESSION PUBLISHER
set -eu
store=$HOME/.local/state/pi/touchtone
dir=$store/metadata/$2
case $1 in
put)
	mkdir -p "$dir"
	temporary=$dir/.$3.$$
	cat >"$temporary"
	mv "$temporary" "$dir/$3.json"
	;;
drop) rm "$dir/$3.json" ;;
esac
