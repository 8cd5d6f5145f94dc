#!/usr/bin/env bash
# Measures a GPU that is there for minutes: what matters most comes first, every step is a process of its own
# with a time limit, and all that is known so far is in $OUT after every step. The report is printed last.
#
#   lease.sh first     every kind of kernels against the CPU, speed with torch beside it, counters of the scans
#   lease.sh second    the service of the bundle, memcheck, filters, real vectors, 6 and 10 million rows
#   lease.sh again     the steps of GPU_STEPS, of either call
#
#   OUT           folder of the results, report.md, report.json, logs.tar.gz and ncu.txt (./lease-results)
#   GPU_BUDGET    seconds from the start of the script, after which no step runs (320)
#   GPU_STEPS     names of the steps to run, separated by spaces (all of the call)
#   GPU_KERNELS   kernels of the scans: mma, wgmma or wgmma-ring (the best, and mma if wgmma fails here)
#   GPU_BUNDLE    the bundle: an archive, or its unpacked folder (build/gpu/bundle.tar.xz)
#   GPU_PROGRAMS  folder of the programs (that of this script)
#   GPU_SMALL     not empty: sizes for an emulated GPU, which only check this script
#   GPU_PATIENCE  factor of all time limits, for slow machines (1)
#   SAGITTA_BENCH_PYTHON   a Python with torch and numpy (python3)
#
# Exit codes: 0 every step passed, or was skipped for what is missing here; 1 a step failed or ran out of time;
# 2 usage. The server refuses settings named SAGITTA_… that it does not know, hence the other prefix.
set -u
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
first='facts platform open-mma open-wgmma open-wgmma-ring test-mma test-wgmma test-wgmma-ring scan scan-int8
  torch scan-ring scan-mma ncu-1024 ncu-1'
second='open-wgmma doctor selftest rest memcheck scan-6m scan-filters scan-sentences scan-wordnet scan-10m
  torch-10m racecheck synccheck'

usage() {
  echo "lease.sh: $1" >&2
  sed -n '5,7p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
part="${1:-}"
case "$part" in
  first) known="$first" ;;
  second) known="$second" ;;
  again) known="$first $second" ;;
  *) usage "expected first, second or again, found '$part'" ;;
esac
steps="${GPU_STEPS:-$known}"
if [ "$part" = again ] && [ -z "${GPU_STEPS:-}" ]; then usage 'GPU_STEPS names the steps'; fi
for name in $steps; do
  case " $(echo $known) " in *" $name "*) ;; *) usage "there is no step '$name' in: $(echo $known)" ;; esac
done

programs="${GPU_PROGRAMS:-$here}"
python="${SAGITTA_BENCH_PYTHON:-python3}"
budget="${GPU_BUDGET:-320}"
patience="${GPU_PATIENCE:-1}"
results="${OUT:-lease-results}"
mkdir -p "$results"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
out="$scratch/logs"
mkdir "$out"
: > "$out/steps.tsv"

million=1000000 dimension=768 seconds=0.2 check=32 tests=() quick=(--quick) suite=() rest=(--full) engine=cuda
batches=1,16,64,128,256,1024,4096 ks=10,100 few=1,64 main=1,64,1024,4096 large=1,64,1024 ring=64,128,256,1024
if [ -n "${GPU_SMALL:-}" ]; then
  # Hundreds of queries over REST would take minutes on the emulation.
  million=100 dimension=64 seconds=0 check=64 tests=(--least) quick=(--least) suite=(--case 'page by page') rest=()
  batches=1,9,64 ks=10 main=1,64 large=1,64 ring=9,70 engine=simd
fi
bench=("$programs/cuda-bench" --json --seconds "$seconds")
shape=(--dimension "$dimension" --check "$check" ${GPU_SMALL:+--blocks 40})

# Exit codes of the programs, and of `timeout`.
absent=77
timed_out=124
killed=137

# note NAME OUTCOME CODE SECONDS LIMIT: records a step, and writes the results.
note() {
  printf '%s\t%s\t%s\t%s\t%s\n' "$@" >> "$out/steps.tsv"
  python3 "$here/report.py" --call "lease-$part" --million "$million" --dimension "$dimension" \
    --seconds "$SECONDS" --steps "$(echo $steps)" "$out" "$results"
  cat "$out"/ncu-*.out > "$results/ncu.txt" 2> /dev/null
  tar -czf "$results/logs.new" -C "$out" . && mv "$results/logs.new" "$results/logs.tar.gz"
  echo "$1: $2, $4 s"
}

# step NAME SECONDS COMMAND…: runs the command with a time limit; its output goes to files. Never fails.
step() {
  local name="$1" limit=$(($2 * patience)) left=$((budget - SECONDS)) begun=$SECONDS code outcome
  shift 2
  if [ "$left" -lt 2 ]; then
    echo 'the time of the call is used up' > "$out/$name.err"
    note "$name" 'out of time' "$timed_out" 0 "$limit"
    return
  fi
  [ "$limit" -lt "$left" ] || limit=$left
  # KILL, if it still runs five seconds after TERM: a driver may hang.
  timeout -k 5 "$limit" "$@" > "$out/$name.out" 2> "$out/$name.err"
  code=$?
  case "$code" in
    0) outcome=passed ;;
    "$absent" | 126 | 127) outcome=skipped ;;
    "$timed_out" | "$killed") outcome='timed out' ;;
    *) outcome=failed ;;
  esac
  note "$name" "$outcome" "$code" $((SECONDS - begun)) "$limit"
}

# skip NAME REASON: a step that cannot be run here.
skip() {
  echo "$2" > "$out/$1.err"
  note "$1" skipped "$absent" 0 0
}

# Whether a step has run, and whether it failed.
has_run() { cut -f 1 "$out/steps.tsv" | grep -qx -- "$1"; }
has_failed() { grep -qE "^$1"$'\t(failed|timed out)\t' "$out/steps.tsv"; }

# The kernels to measure: the best (empty), or mma where wgmma does not work.
kernels() {
  if [ -n "${GPU_KERNELS:-}" ]; then
    echo "$GPU_KERNELS"
  elif has_failed open-wgmma || has_failed test-wgmma; then
    echo mma
  fi
}

# scan NAME SECONDS OPTIONS…
scan() {
  local name="$1" limit="$2" kinds
  kinds="$(kernels)"
  shift 2
  step "$name" "$limit" "${bench[@]}" ${kinds:+--kernels "$kinds"} "$@" scan
}
torch() { step "$1" 45 "$python" "$here/torch_topk.py" --seconds "$seconds" --dimension "$dimension" "${@:2}"; }

# under TOOL NAME SECONDS COMMAND…: a step under a tool of CUDA, if it is installed.
under() {
  local tool="$1" name="$2"
  shift
  if command -v "$tool" > /dev/null; then step "$@"; else skip "$name" "$tool is not installed"; fi
}
# ncu leaves the clocks as they are; the bench records one search, and not the check of the kernels.
counters() {
  local options=(--clock-control none --profile-from-start off --set full) kinds
  kinds="$(kernels)"
  under ncu "$1" 45 ncu "${options[@]}" "${bench[@]}" ${kinds:+--kernels "$kinds"} "${shape[@]}" \
    --rows "$million" --batches "$2" --profile scan
}
# There is no initcheck: scans read the slack behind the last panel, by design.
sanitize() {
  local options=(--tool "$1" --error-exitcode 1)
  under compute-sanitizer "$1" 60 compute-sanitizer "${options[@]}" "${@:2}"
}
small_scan=("$programs/cuda-bench" --rows 5000 --dimension 200 --blocks 2000 --batches 1,70,300 --seconds 0 scan)

# service NAME SECONDS WORDS…: a command of the bundle, which is unpacked before the first.
bundle="${GPU_BUNDLE:-build/gpu/bundle.tar.xz}"
service() {
  if [ -f "$bundle" ] && ! has_run unpack; then
    # The image may lack xz; Python has it.
    step unpack 30 "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="tar")' \
      "$bundle" "$scratch"
    bundle="$(ls -d "$scratch"/sagitta-*-linux-*/ 2> /dev/null | head -n 1)"
  fi
  if [ -x "$bundle/bin/sagitta" ]; then
    step "$1" "$2" env -u SAGITTA_BENCH_PYTHON "$bundle/bin/sagitta" "${@:3}"
  else
    skip "$1" 'there is no bundle'
  fi
}

# real NAME DIMENSION SECONDS OPTIONS…: the bench on the vectors of a file, of which the last are the queries.
real() {
  if [ -s "$scratch/$1.f32" ]; then
    scan "scan-$1" "$3" --data "$scratch/$1.f32" --dimension "$2" --check "$check" --rows "$million" \
      --batches "$large" --ks "$ks" "${@:4}"
  else
    skip "scan-$1" 'there are no vectors'
  fi
}
wordnet() {
  local terms="$here/wordnet-terms.gz" width=$dimension
  # The archive for a host with a checkout does not repeat them.
  [ -f "$terms" ] || terms=bench/data/wordnet-terms.gz
  if [ ! -f "$terms" ]; then
    skip scan-wordnet 'there are no terms of WordNet here'
    return
  fi
  if [ -n "${GPU_SMALL:-}" ]; then width=16; fi
  gzip -dc "$terms" > "$scratch/terms"
  step wordnet-vectors 40 "$programs/term-vectors" "$scratch/terms" "$width" "$scratch/wordnet.f32"
  real wordnet "$width" 30
}
sentences() {
  local from="$here/sentences.npy" packed=bench/data/sentences.npy.gz
  # A host with a checkout has some, too.
  if [ ! -f "$from" ] && [ -f "$packed" ]; then
    from="$scratch/sentences.npy"
    gzip -dc "$packed" > "$from"
  fi
  if [ -f "$from" ]; then
    step sentence-vectors 30 "$python" "$here/vectors_of_npy.py" "$from" "$scratch/sentences.f32" \
      "$million"
    real sentences "$(cat "$out/sentence-vectors.out")" 60 --method auto,tiles,head
  else
    skip scan-sentences 'there are no vectors of sentences here'
  fi
}
facts() {
  uname -r; nproc; free -g | sed -n 2p; nvidia-smi
  nvidia-smi --format=csv --query-gpu="name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,\
temperature.gpu,ecc.mode.current,pcie.link.gen.current,pcie.link.width.current"
  command -v ncu compute-sanitizer nvcc node
  return 0
}
export -f facts

run() {
  case "$1" in
    facts) step facts 15 bash -c facts ;;
    platform) step platform 25 "$programs/platform-test" "${tests[@]}" ;;
    open-*) step "$1" 20 "${bench[@]}" --kernels "${1#open-}" peaks ;;
    test-*) step "$1" 45 "$programs/cuda-test" --kernels "${1#test-}" "${tests[@]}" ;;
    scan) scan scan 50 "${shape[@]}" --rows "$million" --batches "$batches" --ks "$ks" ;;
    scan-int8) scan scan-int8 20 "${shape[@]}" --rows "$million" --batches "$few" --method tiles ;;
    torch) torch torch --rows "$million" --batches "$main" ;;
    scan-ring) GPU_KERNELS=wgmma-ring scan scan-ring 25 "${shape[@]}" --rows "$million" --batches "$ring" ;;
    scan-mma) GPU_KERNELS=mma scan scan-mma 25 "${shape[@]}" --rows "$million" --batches "$large" ;;
    ncu-*) counters "$1" "${1#ncu-}" ;;
    doctor) service doctor 40 doctor gpu --json ;;
    selftest) service selftest 75 selftest --engine cuda "${suite[@]}" ;;
    rest) SAGITTA_ENGINE="$engine" service rest 75 bench rest "${rest[@]}" ;;
    memcheck)
      kinds="$(kernels)"
      sanitize memcheck "$programs/cuda-test" --kernels "${kinds:-wgmma}" "${quick[@]}"
      ;;
    racecheck | synccheck) sanitize "$1" "${small_scan[@]}" ;;
    scan-filters) scan scan-filters 30 "${shape[@]}" --rows "$million" --batches "$large" --filters 100,50,10,1 ;;
    scan-sentences) sentences ;;
    scan-wordnet) wordnet ;;
    scan-6m) scan scan-6m 75 "${shape[@]}" --rows $((6 * million)) --batches "$large" --method auto,tiles ;;
    scan-10m) scan scan-10m 75 "${shape[@]}" --rows $((10 * million)) --batches "$large" --method auto,tiles ;;
    torch-10m) torch torch-10m --rows $((10 * million)) --batches "$large" ;;
  esac
}
for name in $steps; do run "$name"; done
echo
cat "$results/report.md"
! grep -qE $'\t(failed|timed out|out of time)\t' "$out/steps.tsv"
