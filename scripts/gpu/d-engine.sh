#!/usr/bin/env bash
# Call D, under ten minutes: the engine of an unpacked bundle on the GPU: what it finds and chooses, the
# contract of all engines, and queries over REST.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin d-engine 590

bundle="$(find_bundle)"
sagitta="$bundle/bin/sagitta"
selftest=() bench=(--full) engine=cuda
if [ -n "$small" ]; then
  # Hundreds of queries over REST would take minutes on the emulation.
  selftest=(--case 'page by page') bench=() engine=simd
fi
step doctor 90 "$sagitta" doctor gpu --json
step doctor-table 90 "$sagitta" doctor gpu
step selftest 240 "$sagitta" selftest --engine cuda "${selftest[@]}"
step rest 240 env -u SAGITTA_BENCH_PYTHON SAGITTA_ENGINE="$engine" "$sagitta" bench rest "${bench[@]}"
