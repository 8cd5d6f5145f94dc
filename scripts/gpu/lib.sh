# What the calls of a first session on a GPU share: steps with timeouts, all of which are run whatever
# fails, and their outcome as JSON and as a Markdown table. Needs bash, coreutils, gzip and awk only.
#
# The server refuses settings named SAGITTA_… that it does not know, hence the other prefix.
#
#   GPU_OUT        folder for results (default: ./gpu-results)
#   GPU_PROGRAMS   folder of the programs, such as cuda-bench (default: that of the scripts)
#   GPU_BUNDLE     folder of an unpacked bundle (default: sagitta-*-linux-* beside the scripts)
#   GPU_BUDGET     seconds for the whole call; later steps get what is left
#   GPU_SMALL      not empty: sizes for an emulated GPU, which only check the scripts
#   GPU_PATIENCE   factor of all timeouts, for slow machines (default: 1)
#   SAGITTA_BENCH_PYTHON    a Python with torch (default: python3)

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
small="${GPU_SMALL:-}"
python="${SAGITTA_BENCH_PYTHON:-python3}"
programs="${GPU_PROGRAMS:-$here}"
if [ ! -x "$programs/cuda-bench" ] && [ -x "$here/../../build/kernels/cuda-bench" ]; then
  programs="$here/../../build/kernels"
fi
torch_script="$here/torch_topk.py"
[ -f "$torch_script" ] || torch_script="$here/../../bench/cuda/torch_topk.py"
wordnet_terms="$here/wordnet-terms.gz"
[ -f "$wordnet_terms" ] || wordnet_terms="$here/../../bench/data/wordnet-terms.gz"

# Exit codes of the programs, and of `timeout`.
absent=77
timed_out=124
killed=137

# begin NAME SECONDS: a call, with the time it may take. The folder $scratch is removed at its end.
begin() {
  call="$1"
  budget="${GPU_BUDGET:-$2}"
  out="${GPU_OUT:-gpu-results}/$call"
  mkdir -p "$out"
  rm -f "$out"/*.out "$out"/*.err "$out"/steps.jsonl
  started=$SECONDS
  scratch="$(mktemp -d)"
  trap finish EXIT
}

# step NAME SECONDS COMMAND...: runs the command with a timeout; its output goes to files. Never fails.
step() {
  local name="$1" limit="$2" left code begun seconds outcome message
  shift 2
  limit=$((limit * ${GPU_PATIENCE:-1}))
  left=$((budget - (SECONDS - started)))
  begun=$SECONDS
  if [ "$left" -le 0 ]; then
    code=$timed_out
    echo 'the time of the call is used up' > "$out/$name.err"
    : > "$out/$name.out"
  else
    [ "$limit" -lt "$left" ] || limit=$left
    # KILL, if it still runs ten seconds after TERM: a driver may hang.
    timeout -k 10 "$limit" "$@" > "$out/$name.out" 2> "$out/$name.err"
    code=$?
  fi
  seconds=$((SECONDS - begun))
  case "$code" in
    0) outcome=passed ;;
    "$absent" | 126 | 127) outcome=skipped ;;
    "$timed_out" | "$killed") outcome='timed out' ;;
    *) outcome=failed ;;
  esac
  message="$(tail -n 1 "$out/$name.err" | tr -d '\000-\037' | cut -c 1-300)"
  [ -n "$message" ] || message="$(grep -v '^{' "$out/$name.out" | tail -n 1 | tr -d '\000-\037' | cut -c 1-300)"
  printf '{"step":"%s","outcome":"%s","exit_code":%d,"seconds":%d,"limit_seconds":%d,"message":"%s"}\n' \
    "$name" "$outcome" "$code" "$seconds" "$limit" "$(escaped "$message")" >> "$out/steps.jsonl"
  echo "$call/$name: $outcome, $seconds s${message:+: $message}"
  write_report
}

# The folder of an unpacked bundle, empty if there is none: $GPU_BUNDLE, or beside the scripts.
find_bundle() {
  if [ -n "${GPU_BUNDLE:-}" ]; then
    echo "$GPU_BUNDLE"
  else
    ls -d "$here"/sagitta-*-linux-*/ 2> /dev/null | head -n 1
  fi
}

# skip NAME REASON: a step that cannot be run here.
skip() {
  : > "$out/$1.out"
  printf '{"step":"%s","outcome":"skipped","exit_code":%d,"seconds":0,"limit_seconds":0,"message":"%s"}\n' \
    "$1" "$absent" "$(escaped "$2")" >> "$out/steps.jsonl"
  echo "$call/$1: skipped: $2"
}

escaped() { printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g'; }

# Lines of JSON as a JSON array.
array() { awk 'BEGIN { printf "[" } { printf "%s%s", (NR > 1 ? "," : ""), $0 } END { printf "]" }' "$@"; }

# report.json and report.md, complete after every step, so that they exist whenever the call is stopped.
write_report() {
  {
    printf '{"call":"%s","is_small":%s,"seconds":%d,"steps":' "$call" \
      "$([ -n "$small" ] && echo true || echo false)" $((SECONDS - started))
    array "$out/steps.jsonl"
    printf ',"lines":'
    # Lines of the benches, each with its step.
    for file in "$out"/*.out; do
      awk -v step="$(basename "$file" .out)" '/^\{.*\}$/ { sub(/^\{/, "{\"step\":\"" step "\","); print }' "$file"
    done | array
    printf '}\n'
  } > "$out/report.json.new"
  mv "$out/report.json.new" "$out/report.json"
  {
    echo "# $call"
    echo
    echo '| step | outcome | seconds | last line |'
    echo '| --- | --- | --- | --- |'
    awk -F'"' '{
      seconds = $0; sub(/.*"seconds":/, "", seconds); sub(/,.*/, "", seconds)
      message = $0; sub(/.*"message":"/, "", message); sub(/"\}$/, "", message); gsub(/\|/, "\\|", message)
      printf "| %s | %s | %s | %s |\n", $4, $8, seconds, message
    }' "$out/steps.jsonl"
    echo
    awk -f "$here/cases.awk" "$out"/*.out
  } > "$out/report.md.new"
  mv "$out/report.md.new" "$out/report.md"
}

finish() {
  local code=$?
  trap - EXIT
  rm -rf "$scratch"
  write_report
  echo "$call: results in $out/report.json and $out/report.md"
  if [ "$code" -eq 0 ] && grep -Eq '"outcome":"(failed|timed out)"' "$out/steps.jsonl"; then code=1; fi
  exit "$code"
}

# scan NAME SECONDS DATA ROWS DIMENSION BATCHES KS FILTERS [KERNELS]: our kernels, the best or the named ones;
# torch_scan: torch on the same. DATA and KERNELS are those of cuda-bench.
scan() {
  step "$1" "$2" "$programs/cuda-bench" --json --seconds "${measured_seconds:-1}" --data "$3" --rows "$4" \
    --dimension "$5" --batches "$6" --ks "$7" --filters "$8" ${9:+--kernels "$9"} scan
}
torch_scan() {
  step "$1" "$2" "$python" "$torch_script" --seconds "${measured_seconds:-1}" --data "$3" --rows "$4" \
    --dimension "$5" --batches "$6" --ks "$7" --filters "$8"
}
