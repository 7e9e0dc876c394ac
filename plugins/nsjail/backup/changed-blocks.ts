/**
 * Shell functions that find out which parts of a block device are written while its image is copied, from the kernel's own trace: `watch
 * DEVICE` begins, if the kernel can, and `copy_changed IMAGE COPY` copies what was written since. Both fail when that is not known for
 * certain, as when the trace had no room for all events. Only root can use them; `unwatch` ends the watch.
 */
export const changedBlocks = `
tracing=
watch() {
  all=/sys/kernel/tracing/instances
  [ -n "$1" ] && [ -d "$all" ] || return 1
  for left in "$all"/threadbox.*; do [ ! -d "$left" ] || kill -0 "\${left##*.}" 2>/dev/null || rmdir "$left" 2>/dev/null; done
  mkdir "$all/threadbox.$$" 2>/dev/null || return 1
  tracing=$all/threadbox.$$
  numbers=$(cat "/sys/block/$1/dev")
  {
    echo 1024 >"$tracing/buffer_size_kb" &&
    echo "dev == $(( \${numbers%:*} << 20 | \${numbers#*:} )) && !(rwbs ~ \\"R*\\")" >"$tracing/events/block/block_bio_queue/filter" &&
    echo 1 >"$tracing/events/block/block_bio_queue/enable" &&
    echo 1 >"$tracing/tracing_on"
  } 2>/dev/null || { unwatch; return 1; }
}
unwatch() {
  [ -n "$tracing" ] || return 0
  { echo 0 >"$tracing/tracing_on"; echo 0 >"$tracing/events/block/block_bio_queue/enable"; rmdir "$tracing"; } 2>/dev/null
  tracing=
}
copy_changed() {
  [ -n "$tracing" ] || return 1
  # MiB that an event touches. What a program calls itself is in its lines too, and too short for the pattern.
  changed=$(awk '
    /^# entries-in-buffer\\/entries-written: / { split($3, n, "/"); all = n[2] }
    match($0, /: block_bio_queue: [0-9]+,[0-9]+ [A-Z]+ [0-9]+ \\+ [0-9]+ \\[/) {
      seen++
      split(substr($0, RSTART, RLENGTH), w, " ")
      for (i = int(w[5] / 2048); w[7] > 0 && i <= int((w[5] + w[7] - 1) / 2048); i++) parts[i] = 1
    }
    END { if (seen + 0 != all + 0) exit 1; for (i in parts) print i }
  ' "$tracing/trace") || return 1
  printf '%s\\n' "$changed" | sort -n | awk '
    $0 == "" { next }
    NR == 1 || $0 != end { if (NR > 1) print first, end - first; first = $0 }
    { end = $0 + 1 }
    END { if (NR > 0 && end != "") print first, end - first }
  ' | while read -r first count; do
    fallocate -p -o "\${first}MiB" -l "\${count}MiB" "$2" &&
    dd if="$1" of="$2" bs=64K skip=$((first * 16)) seek=$((first * 16)) count=$((count * 16)) conv=notrunc,sparse status=none || exit 1
  done
}
`
