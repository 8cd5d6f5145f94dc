#!/bin/sh
# bin/sagitta of a bundle: runs the command with the bundle's own Node, from any location and through
# any symbolic link. The settings are those of the first line of scripts/sagitta.cjs.
set -eu

home=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
export MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072
exec "$home/runtime/node" --max-semi-space-size=8 "$home/scripts/sagitta.cjs" "$@"
