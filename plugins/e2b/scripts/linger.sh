# shellcheck shell=bash disable=SC2034,SC2154
# Arguments: MARK. Runs after a command's end: waits until its output was read, and then for the processes that it left, so
# that these can still write. A newer envd closes the output as soon as the process ends that it started.
mark=$1
exec 2>/dev/null 6<> <(:)
while read -r -t 60 -N 65536 -u 4; do :; done
while find_marked; [[ ${#pids[@]} -gt 0 ]]; do read -t 5 -u 6; done
