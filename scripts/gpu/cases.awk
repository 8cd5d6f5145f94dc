# A Markdown table of the cases that the benches print as JSON lines.
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
    print "| program | rows × dimension | queries | k | % pass | ms on the device | ms | of copy | of int8 | rescored | undecided |"
    print "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
  }
  precision = member("precision")
  printf "| %s | %s × %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", \
    precision == "" ? "sagitta" : "torch " precision, member("rows"), member("dimension"), \
    member("queries"), member("k"), member("filter_percent"), member("device_ms_p50"), \
    member("wall_ms_p50"), percent(member("share_of_copy")), percent(member("share_of_int8")), \
    member("rescored_per_query"), member("undecided")
}
