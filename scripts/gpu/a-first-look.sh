#!/usr/bin/env bash
# Call A, under nine minutes: versions, the platform, peak rates, the kernels against brute force, and
# first figures at 200,000 and 1,000,000 rows, with torch on the same. For batches of up to 128 queries also
# the scan with a ring: whether it becomes the default is to be decided by these cases.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin a-first-look 530

rows=200000 large=1000000 dimension=768 batches=1,64,65,128,300,4096 ks=10,100 filters=100,1
ring_batches=64,65,128
if [ -n "$small" ]; then
  rows=600 large=900 dimension=64 batches=1,9,70 ks=5 filters=100,50 ring_batches=9,70 measured_seconds=0
fi
step versions 30 bash -c 'uname -a; nvidia-smi; nvidia-smi -q | grep -iE "clocks|power|ecc" | head -n 40; true'
step platform-test 60 "$programs/platform-test"
step peaks 60 "$programs/cuda-bench" --json peaks
step scan-200k 120 "$programs/cuda-bench" --json --seconds "${measured_seconds:-0.3}" --rows "$rows" \
  --dimension "$dimension" --batches "$batches" --ks "$ks" --filters "$filters" scan
scan scan-1m 150 clustered "$large" "$dimension" "${batches/,300/}" "${ks%%,*}" "$filters"
scan scan-1m-ring 60 clustered "$large" "$dimension" "$ring_batches" "${ks%%,*}" "$filters" wgmma-ring
torch_scan torch-1m 120 clustered "$large" "$dimension" "${batches/,300/}" "${ks%%,*}" "$filters"
# Last: it takes what time is left, and call C runs more of it.
step cuda-test 240 "$programs/cuda-test" ${GPU_TEST_OPTIONS:-}
