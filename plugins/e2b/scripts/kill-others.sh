# shellcheck shell=bash disable=SC2034
# Arguments: SERVER. Kills the foreground commands of every other server, with their trees. Processes that they left stay.
exec 2>/dev/null
server=$1
for path in /proc/[0-9]*; do
  mapfile -d '' -t words <$path/cmdline || continue
  [[ ${words[3]} == threadbox-@(call|relay) && ${words[5]} != "$server" ]] || continue
  mark=${words[4]}
  kill -KILL ${path#/proc/}
  kill_marked
done
:
