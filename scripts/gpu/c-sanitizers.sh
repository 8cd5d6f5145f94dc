#!/usr/bin/env bash
# Call C, under ten minutes: many shapes against brute force, compute-sanitizer, and the counters of the
# scans. initcheck is left out: scans read the slack behind the last panel, by design.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin c-sanitizers 590

rows=200000 dimension=768 test_options=--large
if [ -n "$small" ]; then rows=600 dimension=64 test_options="${GPU_TEST_OPTIONS:-}"; fi
step cuda-test-large 200 "$programs/cuda-test" $test_options
if command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck synccheck; do
    step "$tool" 120 compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$programs/cuda-bench" --rows 5000 --dimension 200 --batches 1,70,300 --seconds 0 scan
  done
else
  for tool in memcheck racecheck synccheck; do skip "$tool" 'compute-sanitizer is not installed'; done
fi
if command -v ncu > /dev/null; then
  for batch in 1 4096; do
    step "ncu-$batch" 90 ncu --set full --kernel-name 'regex:scan' --launch-count 6 \
      "$programs/cuda-bench" --rows "$rows" --dimension "$dimension" --batches "$batch" --seconds 0 scan
  done
else
  for batch in 1 4096; do skip "ncu-$batch" 'ncu is not installed'; done
fi
