# shellcheck shell=bash disable=SC2034
# Arguments: MARK. Kills all processes that have the mark.
mark=$1
exec 2>/dev/null
kill_marked
