/**
 * The programs of ours that run inside, for bash: each gets what it needs as arguments. A command is started by `CALL`
 * and told from its leavings by marks, because envd signals only the process that it started, and says that it has
 * ended only when nobody holds its output any more. What they say about a command stands between bytes that are in no
 * argument, so that no list of processes looks like it.
 */

const quoted = (script: string): string => `'${script.replaceAll("'", `'\\''`)}'`

/** Whoever is started under a mark has it in two limits that Linux keeps but hardly uses, and in its environment. */
const MARKED = `
marked() {
  pids=()
  local path pid stat fields limits words
  for path in /proc/[0-9]*; do
    pid=\${path#/proc/}
    [[ $pid == $$ ]] && continue
    mapfile -t limits <$path/limits || continue
    if [[ "\${limits[*]}" != *"Max file locks            $mark "* && "\${limits[*]}" != *"Max realtime timeout      $mark "* ]]; then
      words=
      mapfile -d '' -t words <$path/environ
      [[ " \${words[*]} " == *" THREADBOX_CALL=$mark "* ]] || continue
    fi
    read -r stat <$path/stat || continue
    fields=(\${stat##*) })
    [[ \${fields[0]} == [ZX] && \${fields[17]} -le 1 ]] && continue
    pids+=($pid)
  done
}`

/** Ends all that have the mark: stopped first, since a tree that forks as fast as it dies would never end. It forks nothing itself. */
const SWEEP = `${MARKED}
sweep() {
  local begun=$SECONDS
  marked
  [[ \${#pids[@]} -gt 0 ]] && kill -STOP "\${pids[@]}"
  while marked; [[ \${#pids[@]} -gt 0 && $((SECONDS - begun)) -lt 60 ]]; do kill -KILL "\${pids[@]}"; done
}`

/**
 * After a command's end: waits until its output was taken, then for what it left behind, so that this can still write.
 * A newer envd closes the output as soon as the process ends that it started.
 */
const LINGER = `mark=$1
exec 2>/dev/null 6<> <(:)
${MARKED}
while read -r -t 60 -N 65536 -u 4; do :; done
while marked; [[ \${#pids[@]} -gt 0 ]]; do read -t 5 -u 6; done`

/** `MARK SERVER pipe|pty pipe|ignore CWD COMMAND…`; its own variables are named so that they are none of the command's. */
const START = `tb_mark=$1 tb_mode=$3 tb_input=$4 tb_cwd=$5
shift 5
tell() { printf '\\1tb:%s:%s\\2' "$tb_mark" "$1"; }
${SWEEP}
refuse() { tell "$1"; read -r -t 10; exit 0; }
[[ -n $tb_cwd ]] || { tb_cwd=/home/user; [[ -d $tb_cwd ]] || tb_cwd=/; }
cd -- "$tb_cwd" 2>/dev/null || refuse cwd
type -P -- "$1" >/dev/null || refuse program
begin() {
  ulimit -x $tb_mark
  ulimit -R $tb_mark
  export THREADBOX_CALL=$tb_mark
  unset OLDPWD
  tell "pid $BASHPID"
}
set -m
if [[ $tb_mode == pty ]]; then
  # Its stderr has to be the terminal: by it bash hands that over.
  (begin 2>/dev/null; exec "$@")
  code=$?
  while [[ $(jobs -sp) ]]; do fg %1 >/dev/null; code=$?; done
  tell "end $code"
  sleep 0.3
  exit $code
fi
exec 4<&0 5>&2 </dev/null 2>/dev/null
trap 'mark=$tb_mark; sweep; exit 137' TERM
if [[ $tb_input == pipe ]]; then (begin; exec <&4 2>&5 4<&- 5>&-; exec "$@") &
else (begin; exec 2>&5 4<&- 5>&-; exec "$@") &
fi
set +m
wait $!
code=$?
tell "end $code"
tell end >&5
exec -c /bin/bash -pc LINGER threadbox-left "$tb_mark"`

export const CALL = START.replace('LINGER', () => quoted(LINGER))

/** `MARK` */
export const KILL = `mark=$1
exec 2>/dev/null
${SWEEP}
sweep`

/** `SERVER`: ends the commands that any other server had in the foreground, with their trees. What they left stays. */
export const KILL_OTHERS = `exec 2>/dev/null
server=$1
${SWEEP}
for path in /proc/[0-9]*; do
  mapfile -d '' -t words <$path/cmdline || continue
  [[ \${words[3]} == threadbox-@(call|relay) && \${words[5]} != "$server" ]] || continue
  mark=\${words[4]}
  kill -KILL \${path#/proc/}
  sweep
done
:`

/** `threadbox-relay MARK SERVER PORT`, for perl, which every Debian has: a connection to a port inside, with its two ends apart. */
export const RELAY = `use Socket qw(:DEFAULT pack_sockaddr_in6 IN6ADDR_LOOPBACK);
my (undef, $mark, undef, $port) = @ARGV;
$| = 1;
sub tell_host { syswrite(STDOUT, "\\1tb:$mark:$_[0]\\2"); }
sub copy {
  my ($from, $to) = @_;
  while (my $got = sysread($from, my $bytes, 65536)) {
    for (my $at = 0; $at < $got; ) { my $put = syswrite($to, $bytes, $got - $at, $at) or return; $at += $put; }
  }
}
my $socket;
for my $place (pack_sockaddr_in($port, INADDR_LOOPBACK), pack_sockaddr_in6($port, IN6ADDR_LOOPBACK)) {
  my $family = sockaddr_family($place);
  socket($socket, $family, SOCK_STREAM, 0) or next;
  if (connect($socket, $place)) { tell_host("open"); last; }
  close($socket); $socket = undef;
}
if (!$socket) { tell_host("refused"); sysread(STDIN, my $byte, 1); exit; }
$SIG{PIPE} = "IGNORE";
if (my $sender = fork) {
  copy($socket, *STDOUT);
  tell_host("end");
  waitpid($sender, 0);
} else {
  copy(*STDIN, $socket);
  shutdown($socket, 1);
}
`
