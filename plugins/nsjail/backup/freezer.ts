import type { Descriptor } from '../../../src/descriptor.ts'
import { SYSTEM_PATH } from '../host/run-program.ts'
import { tailOf } from '../host/stderr.ts'
import { changedBlocks } from './changed-blocks.ts'

export type Freeze = {
  /** This file exists while something is frozen. It has the pid of the program that ends the freeze. */
  mark: string
} /** `device`: the loop device that has the image. */ & (
  | { mount: Descriptor; copy?: { from: string; to: string; device: string } }
  /** Processes by their pid namespace. Empty: nothing runs. `asTree`: into a directory, without what overlays work with. */
  | { processes: string; pack?: { from: string; to: string; asTree: boolean } }
)

/** Of 512 bytes. What takes less is copied as fast as the trace is begun. */
const COPIED_BEFORE_BLOCKS = 32_768

const LONGEST_WAIT_MS = 5000

/** When two programs want the mark, one of them gets it. Times are in nanoseconds. */
const common = `
trap '' HUP INT TERM PIPE
take() { ( set -C; echo $$ >"$1" ) 2>/dev/null || { echo 'it is being copied by another backup' >&2; exit 3; }; }
now() { date +%s%N; }
`

/**
 * $1: mark, $2: image, $3: copy or nothing, $4: loop device. Descriptor 3: the root of its file system. Where blocks cannot be
 * shared, all is copied before, and what was written meanwhile once more while it is frozen.
 */
const freezeFileSystem = `${common}${changedBlocks}
status=0
if [ -n "$3" ]; then
  take "$1"
  if [ "$(stat -c %b "$2")" -gt ${COPIED_BEFORE_BLOCKS} ] && ! cp --reflink=always -- "$2" "$3" 2>/dev/null 3<&- && watch "$4"; then
    sync -f /proc/self/fd/3
    cp --reflink=never -- "$2" "$3" 3<&- && sync -f /proc/self/fd/3 || unwatch
  fi
  [ -n "$tracing" ] || rm -f "$3"
  fsfreeze -f /proc/self/fd/3 || { rm -f "$1"; unwatch; exit 3; }
  begun=$(now)
  copy_changed "$2" "$3" 3<&- || cp --reflink=auto -- "$2" "$3" 3<&-; status=$?
fi
fsfreeze -u /proc/self/fd/3 2>/dev/null
rm -f "$1"
[ -z "$3" ] || echo $(( ($(now) - begun) / 1000000 )) 2>/dev/null
unwatch
exit $status
`

/**
 * $1: mark, $2: directory, $3: archive or nothing, $4: pid namespace or nothing, $5: `tree` for a directory as $3. As root of a
 * namespace an ordinary user can read all that belongs to it. A stopped process starts no other, but on a busy machine a
 * process ends its call first, such as a write: each thread must have stopped. A thread that waits for a child of vfork never stops; it
 * stays within the kernel until its child goes on, so it counts as stopped. Where the kernel does not tell what threads wait for, the copy
 * begins after LONGEST_WAIT_MS. The work directories of overlays are not copied.
 */
const freezeProcesses = `${common}
# A thread that waits for a child of vfork is in the first function, or in its caller where the compiler made one of both.
moving() {
  for status in $(grep -ls '^State:[[:space:]]*[RSDI]' $(printf '/proc/%s/task/*/status ' $pids)); do
    place=gone
    read -r place 2>/dev/null <"\${status%/status}/wchan"
    case $place in gone | wait_for_vfork_done | kernel_clone | _do_fork) ;; *) return 0 ;; esac
  done
  return 1
}
# The name's brackets would be a class of a pattern, whose last one alone stands for itself.
inside() { [ -z "$4" ] || find /proc/[0-9]*/ns/pid -prune -lname "pid:?\${4#pid:?}" 2>/dev/null | cut -d/ -f3; }
status=0
root=
[ "$5" != tree ] || [ "$(id -u)" = 0 ] || ! unshare -r true 2>/dev/null || root='unshare -r'
if [ -n "$3" ]; then
  take "$1"
  begun=$(now)
  known= pids=$(inside "$@")
  while [ "$pids" != "$known" ]; do
    kill -STOP $pids 2>/dev/null
    stopping=$(now)
    while moving && [ $(($(now) - stopping)) -lt ${LONGEST_WAIT_MS}000000 ]; do sleep 0.002; done
    known=$pids pids=$(inside "$@")
  done
  if [ "$5" = tree ]; then
    mkdir -m 711 "$3" && $root cp -a --reflink=auto -- "$2/upper" "$2/local" "$3"; status=$?
  else
    tar -C "$2" --exclude='./work/*' --exclude='./local-work/*' --numeric-owner --xattrs --xattrs-include='*' --sparse -cf "$3" .; status=$?
  fi
fi
pids=$(inside "$@")
[ -z "$pids" ] || kill -CONT $pids 2>/dev/null
rm -f "$1"
[ -z "$3" ] || [ -z "$4" ] || echo $(( ($(now) - begun) / 1000000 )) 2>/dev/null
exit $status
`

/**
 * Freezes, copies and goes on; or, without anything to copy, goes on. Resolves to how long it was frozen. It is a program of its
 * own, in a session of its own, which goes on when this process is killed.
 */
export async function runFreezer(freeze: Freeze): Promise<number> {
  const [script, args] =
    'mount' in freeze
      ? [freezeFileSystem, [freeze.copy?.from ?? '', freeze.copy?.to ?? '', freeze.copy?.device ?? '']]
      : [
          freezeProcesses,
          [freeze.pack?.from ?? '', freeze.pack?.to ?? '', freeze.processes, freeze.pack?.asTree ? 'tree' : ''],
        ]
  const child = Bun.spawn(['/bin/sh', '-c', script, 'threadbox-freeze', freeze.mark, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'mount' in freeze ? freeze.mount.number : 'ignore'],
    env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
    detached: true,
  })
  const [output, problems, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code === 0) return Number(output) || 0
  // The program itself was killed, for example because the system is short of memory.
  if (child.signalCode !== null && ('copy' in freeze || 'pack' in freeze)) {
    const { mark } = freeze
    await runFreezer('mount' in freeze ? { mark, mount: freeze.mount } : { mark, processes: freeze.processes })
  }
  throw new Error(tailOf(problems) || `the snapshot failed with ${child.signalCode ?? code}`)
}
