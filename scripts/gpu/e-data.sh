#!/usr/bin/env bash
# Call E, under ten minutes: the data that int8 prunes worst. Real text vectors (WordNet's glosses, 768
# dimensions), then isotropic ones, of which so many rows are close to the best that short lists overflow.
# `scanned again` and `all rows scored` of the table say what that costs; torch runs the same shapes.
#
# Estimates for an H200 with 16 cores, in seconds: vectors of WordNet 15, scans 25, 35, 25 and 60, torch 15,
# 45, 35 and 70, 10,000,000 × 1024 with 80: together 405.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin e-data 590

rows=1000000 large=10000000 wordnet_rows=1000000 wordnet_dimension=768 dimensions=(1536 1024 3072)
batches=4096,64,1 ks=10,100
if [ -n "$small" ]; then
  rows=700 large=900 wordnet_rows=600 wordnet_dimension=16 batches=9,1 ks=5 measured_seconds=0
fi
# The emulation gets a sixteenth of the dimensions.
scaled() { if [ -n "$small" ]; then echo $(($1 / 16)); else echo "$1"; fi; }
vectors="$scratch/wordnet.f32"
gzip -dc "$wordnet_terms" > "$scratch/terms"
step wordnet-vectors 90 "$programs/term-vectors" "$scratch/terms" "$wordnet_dimension" "$vectors"
scan scan-wordnet 60 "$vectors" "$wordnet_rows" "$wordnet_dimension" "$batches" "$ks" 100
for dimension in "${dimensions[@]}"; do
  scan "scan-isotropic-$dimension" 110 isotropic "$rows" "$(scaled "$dimension")" "$batches" "$ks" 100
done
torch_scan torch-wordnet 60 "$vectors" "$wordnet_rows" "$wordnet_dimension" "$batches" "$ks" 100
for dimension in "${dimensions[@]}"; do
  torch_scan "torch-isotropic-$dimension" 110 isotropic "$rows" "$(scaled "$dimension")" "$batches" "$ks" 100
done
scan scan-isotropic-10m 150 isotropic "$large" "$(scaled 1024)" "${batches%,1}" "$ks" 100
