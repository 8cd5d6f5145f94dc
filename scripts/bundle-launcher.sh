#!/bin/sh
# The command of a bundle: runs it with the bundle's own Node, wherever the bundle lies and
# whatever link led here. The settings are those of the first line of src/cli/main.ts.
set -eu

home=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
export MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072
exec "$home/runtime/node" --max-semi-space-size=8 "$home/dist/src/cli/main.js" "$@"
