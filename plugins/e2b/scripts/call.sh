# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# Arguments: MARK SERVER pipe|pty pipe|ignore CWD COMMAND... Runs a command under the mark and reports its pid and its end.
# Its variables begin with tb_ so that they hide none of the command's. `tb_linger` is the text of linger.sh.
tb_mark=$1 tb_mode=$3 tb_input=$4 tb_cwd=$5
shift 5
report() { printf '\1tb:%s:%s\2' "$tb_mark" "$1"; }
refuse() { report "$1"; read -r -t 10; exit 0; }
[[ -n $tb_cwd ]] || { tb_cwd=/home/user; [[ -d $tb_cwd ]] || tb_cwd=/; }
cd -- "$tb_cwd" 2>/dev/null || refuse cwd
type -P -- "$1" >/dev/null || refuse program
begin() {
  ulimit -x $tb_mark
  ulimit -R $tb_mark
  export THREADBOX_CALL=$tb_mark
  unset OLDPWD
  report "pid $BASHPID"
}
set -m
if [[ $tb_mode == pty ]]; then
  # bash hands the terminal over by its stderr, so that must be the terminal.
  (begin 2>/dev/null; exec "$@")
  code=$?
  while [[ $(jobs -sp) ]]; do fg %1 >/dev/null; code=$?; done
  report "end $code"
  sleep 0.3
  exit $code
fi
exec 4<&0 5>&2 </dev/null 2>/dev/null
trap 'mark=$tb_mark; kill_marked; exit 137' TERM
if [[ $tb_input == pipe ]]; then (begin; exec <&4 2>&5 4<&- 5>&-; exec "$@") &
else (begin; exec 2>&5 4<&- 5>&-; exec "$@") &
fi
set +m
wait $!
code=$?
report "end $code"
report end >&5
exec -c /bin/bash -pc "$tb_linger" threadbox-left "$tb_mark"
