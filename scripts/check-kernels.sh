#!/usr/bin/env bash
# Tests the kernels under sanitizers and on processors and GPUs that are emulated, as far as the tools are there.
#
#   scripts/check-kernels.sh            everything, in about 30 minutes; to be run after a change of kernels/
#   scripts/check-kernels.sh --quick    few kinds of rows, and no search for races of GPU kernels; CI runs this
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
quick=()
if [ "${1:-}" = --quick ]; then quick=(--quick); fi
# After what runs beside it, of which some measures how long replies take.
renice -n 10 -p "$BASHPID" > /dev/null || true

begin() { echo "── $1"; }
build() { node scripts/build-kernels.mjs "$@"; }

if ! command -v g++ > /dev/null; then
  echo 'skipped: no g++, so the kernels are not tested'
  exit 0
fi

if [ ${#quick[@]} -eq 0 ]; then
  begin 'kernels under AddressSanitizer and UBSan'
  build test-memory
  build/kernels/test-memory
fi

begin 'kernels under ThreadSanitizer'
build test-threads
build/kernels/test-threads "${quick[@]}"

if [ -d /usr/include/simde ]; then
  begin 'kernels for every x86 target, emulated where the processor lacks it'
  build test-emulated
  build/kernels/test-emulated "${quick[@]}"
else
  echo 'skipped: no SIMDe, so AMX, AVX-512 and AVX-VNNI are not emulated'
fi

if command -v aarch64-linux-gnu-g++ > /dev/null && command -v qemu-aarch64 > /dev/null; then
  begin 'kernels for aarch64, in qemu'
  build test --cross aarch64-linux-gnu-g++
  qemu-aarch64 -cpu max build/kernels-aarch64/test "${quick[@]}"
else
  echo 'skipped: no compiler or emulator for aarch64'
fi

begin 'kernels for GPUs on an emulated GPU, under AddressSanitizer and UBSan'
build emulation-test cuda-test-emulated
build/kernels/emulation-test
build/kernels/cuda-test-emulated "${quick[@]}"
if [ ${#quick[@]} -eq 0 ]; then
  SAGITTA_TEST_EMULATED_CAPABILITY=86 build/kernels/cuda-test-emulated --quick --seed 2

  begin 'races of kernels for GPUs, on the emulated GPU'
  build emulation-test-slow cuda-test-emulated-slow
  build/kernels/emulation-test-slow
  # The kernels of 8.6 are among those of 9.0.
  build/kernels/cuda-test-emulated-slow --quick
fi
