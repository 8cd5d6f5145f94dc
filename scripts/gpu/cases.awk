# Markdown tables of the cases that the benches print as JSON lines: of the kernels and torch, and of engines.
function member(name,    text) {
  text = $0
  if (!sub(".*\"" name "\":", "", text)) return ""
  sub(/[,}].*/, "", text)
  gsub(/"/, "", text)
  return text
}
function percent(share) { return share == "" ? "" : sprintf("%.1f %%", 100 * share) }
/^\{.*"device_ms_p50"/ {
  if (!has_head++) {
    print "| program | data | rows × dimension | queries | k | % pass | ms on the device | ms | of copy | of int8 | rescored | scanned again | all rows scored | undecided |"
    print "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
  }
  precision = member("precision")
  scan = member("scan")
  program = precision != "" ? "torch " precision : scan == "best" ? "sagitta" : "sagitta " scan
  printf "| %s | %s | %s × %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", \
    program, member("data"), member("rows"), \
    member("dimension"), member("queries"), member("k"), member("filter_percent"), member("device_ms_p50"), \
    member("wall_ms_p50"), percent(member("share_of_copy")), percent(member("share_of_int8")), \
    member("rescored_per_query"), member("repeated"), member("exhaustive"), member("undecided")
}
/^\{.*"engine":/ {
  if (!has_engine_head++) {
    print ""
    print "| engine | rows × dimension | queries | k | % pass | p50 ms | p99 ms | queries/s | rescored | by the CPU |"
    print "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
  }
  printf "| %s | %s × %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", member("engine"), member("rows"), \
    member("dimension"), member("queries"), member("k"), member("filter_percent"), \
    sprintf("%.3f", member("p50_ms")), sprintf("%.3f", member("p99_ms")), sprintf("%.0f", member("queries_per_s")), \
    sprintf("%.1f", member("rescored_per_query")), member("fallback_queries")
}
