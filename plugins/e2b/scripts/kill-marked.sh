# shellcheck shell=bash disable=SC2154
# Kills all processes that have the mark. They are stopped first: a tree that forks as fast as it dies would never end.
# It starts no process. Gives up after 60 s.
kill_marked() {
  local begun=$SECONDS
  find_marked
  [[ ${#pids[@]} -gt 0 ]] && kill -STOP "${pids[@]}"
  while find_marked; [[ ${#pids[@]} -gt 0 && $((SECONDS - begun)) -lt 60 ]]; do kill -KILL "${pids[@]}"; done
}
