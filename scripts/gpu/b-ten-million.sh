#!/usr/bin/env bash
# Call B, under ten minutes: 10,000,000 × 768, where offsets exceed 2^31 and 2^32, with torch on the same.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin b-ten-million 590

rows=10000000 dimension=768 batches=4096,64,1
if [ -n "$small" ]; then
  rows=1000 dimension=64 batches=9,1 measured_seconds=0
fi
scan scan-10m 330 clustered "$rows" "$dimension" "$batches" 10 100
torch_scan torch-10m 240 clustered "$rows" "$dimension" "$batches" 10 100
