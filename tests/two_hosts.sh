#!/usr/bin/env bash
# Run a command on two hosts at once: network namespaces of this machine, named one and two, joined by a cable.
#   bash tests/two_hosts.sh COMMAND...
# Nothing outside sees the namespaces. They end with this script, whatever ends it, and so does all that runs in them.
set -eu

if [ "$1" != --inside ]; then
    [ "$(id -u)" = 0 ] || as_root="--user --map-root-user"
    exec unshare ${as_root:-} --net --uts --mount --pid --fork --kill-child --mount-proc bash "$0" --inside "$@"
fi
shift

names=$(mktemp)
printf '%s\n' "127.0.0.1 localhost" "10.77.0.1 one" "10.77.0.2 two" >"$names"
mount --bind "$names" /etc/hosts
rm "$names"

live() { # NAME ADDRESS COMMAND...: be a host, once there is a cable
    hostname "$1"
    ip link set lo up
    until ip link set cable up 2>/dev/null; do sleep 0.02; done
    ip address add "$2/24" dev cable
    exec "${@:3}"
}
export -f live

unshare --net --uts bash -euc 'live two 10.77.0.2 "$@"' - "$@" &
two=$!
until [ "$(readlink /proc/$two/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link add cable type veth peer name cable netns $two
live one 10.77.0.1 "$@" &
one=$!
wait $one
wait $two
