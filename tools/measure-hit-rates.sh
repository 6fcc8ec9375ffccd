#!/bin/bash
# Cache hit rates of bundled launches on a real GPU, from hardware counters, as one CSV:
#   tools/measure-hit-rates.sh OUT.csv [NAME[@SCALE][,PARAMETER=VALUE]...]...  (default: every bundled launch)
#   tools/measure-hit-rates.sh --metrics                     (the counters that are read)
# Needs Nsight Compute (ncu) with the right to read counters. Each kernel is profiled alone, with all
# caches flushed before it, clocks as they are. Environment: DEMARC (the program, build/release/demarc),
# CACHE (all: flush before every kernel; none: leave the caches as they are), LAUNCHES (kernels of a launch
# file that are profiled, from its first: 24).
set -euo pipefail
demarc=${DEMARC:-build/release/demarc}
cache=${CACHE:-all}
launches=${LAUNCHES:-24}
out=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ $# -eq 0 ]]; then
  for file in kernels/launch/*.json; do set -- "$@" "$(basename "$file" .json)"; done
fi

# What this ncu knows of the counters that tell hits from misses, by cache, unit and operation.
wanted='l1tex__t_sectors l1tex__t_sectors_lookup_hit
  l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit
  l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_lookup_hit
  l1tex__t_sectors_pipe_lsu_mem_global_op_st l1tex__t_sectors_pipe_lsu_mem_global_op_st_lookup_hit
  l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_requests_pipe_lsu_mem_global_op_st
  l1tex__m_xbar2l1tex_read_sectors l1tex__m_l1tex2xbar_write_sectors
  lts__t_sectors lts__t_sectors_lookup_hit lts__t_sectors_lookup_miss
  lts__t_sectors_op_read lts__t_sectors_op_read_lookup_hit lts__t_sectors_op_read_lookup_miss
  lts__t_sectors_op_write lts__t_sectors_op_write_lookup_hit lts__t_sectors_op_atom lts__t_sectors_op_red
  lts__t_sectors_srcunit_tex lts__t_sectors_srcunit_tex_lookup_hit lts__t_sectors_srcunit_tex_lookup_miss
  lts__t_sectors_srcunit_tex_op_read lts__t_sectors_srcunit_tex_op_read_lookup_hit
  lts__t_sectors_srcunit_tex_op_read_lookup_miss
  lts__t_sectors_srcunit_tex_op_write lts__t_sectors_srcunit_tex_op_write_lookup_hit
  lts__t_sectors_srcunit_ltcfabric lts__t_sectors_srcunit_ltcfabric_lookup_hit lts__t_sectors_srcnode_gpc
  dram__bytes_read dram__bytes_write gpu__time_duration'
ncu --query-metrics 2>/dev/null | awk '{ print $1 }' | sort -u >"$work/known"
metrics=l1tex__t_sector_hit_rate.pct,lts__t_sector_hit_rate.pct,launch__shared_mem_config_size
for name in $wanted; do
  ! grep -qx "$name" "$work/known" || metrics+=,$name.sum
done
for name in dram__throughput lts__t_sectors l1tex__t_sectors sm__inst_executed; do
  ! grep -qx "$name" "$work/known" || metrics+=,$name.avg.pct_of_peak_sustained_elapsed
done
if [[ $out == --metrics ]]; then
  echo "$metrics"
  exit
fi

for spec in "$@"; do
  IFS=, read -r -a parts <<<"$spec"
  name=${parts[0]%@*}
  scale=()
  [[ ${parts[0]} == *@* ]] && scale=(--scale "${parts[0]#*@}")
  for setting in "${parts[@]:1}"; do scale+=(--param "$setting"); done
  if ! ncu --clock-control none --cache-control "$cache" --launch-count "$launches" --metrics "$metrics" --csv --print-units base \
    "$demarc" run "bundled:$name" "${scale[@]}" >"$work/one.txt" 2>"$work/err.txt"; then
    echo "measure-hit-rates: $spec: ncu failed: $(tail -n 3 "$work/err.txt" "$work/one.txt" | tr '\n' ' ')" >&2
    continue
  fi
  # The details page: one row a metric. Its columns are found by name, in quotes, with , inside values.
  awk -v launch="${spec//,/ }" '
    function fields(line,   n, i, c, quoted, f) {
      n = 1; f = ""; quoted = 0
      for (i = 1; i <= length(line); ++i) {
        c = substr(line, i, 1)
        if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) { part[n++] = f; f = "" }
        else f = f c
      }
      part[n] = f
      return n
    }
    /^"ID"/ { n = fields($0); for (i = 1; i <= n; ++i) column[part[i]] = i; next }
    /^"[0-9]+"/ {
      fields($0)
      value = part[column["Metric Value"]]
      gsub(",", "", value)
      kernel = part[column["Kernel Name"]]
      sub(/\(.*/, "", kernel)
      print launch "," part[column["ID"]] "," kernel "," part[column["Metric Name"]] "," value
    }' "$work/one.txt" >>"$work/all.csv"
done

# One row for each kernel that ran: what its loads asked of the L1 and what the L1 and texture units asked of
# the L2, and how much of it hit.
awk -F, -v columns="l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit
lts__t_sectors_srcunit_tex lts__t_sectors_srcunit_tex_lookup_hit lts__t_sectors_srcunit_tex_op_read
lts__t_sectors_srcunit_tex_op_read_lookup_hit dram__bytes_read dram__bytes_write gpu__time_duration" '
  BEGIN {
    n = split(columns, name, /[ \n]+/)
    print "launch,kernel,instance,l1_load_sectors,l1_load_hits,l2_sectors,l2_hits,l2_read_sectors,l2_read_hits," \
      "dram_read_bytes,dram_written_bytes,time_ns"
  }
  function flush(   i, row) {
    if (key == "") return
    row = launch "," kernel "," instance[launch "," kernel]++
    for (i = 1; i <= n; ++i) row = row "," value[name[i] ".sum"]
    print row
    delete value
  }
  $1 "," $2 != key { flush(); key = $1 "," $2; launch = $1; kernel = $3; instance[$1 "," $3] += 0 }
  { value[$4] = $5 }
  END { flush() }' "$work/all.csv" >"$out"
