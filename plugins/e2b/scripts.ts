import call from './scripts/call.sh' with { type: 'text' }
import findMarked from './scripts/find-marked.sh' with { type: 'text' }
import kill from './scripts/kill.sh' with { type: 'text' }
import killMarked from './scripts/kill-marked.sh' with { type: 'text' }
import killOthers from './scripts/kill-others.sh' with { type: 'text' }
import linger from './scripts/linger.sh' with { type: 'text' }
import relay from './scripts/relay.pl' with { type: 'text' }

/**
 * Our programs inside a sandbox, as text for `bash -c` and `perl -e`. Each begins with the functions that it uses.
 * envd signals only the process that it started, and reports an end only when no process holds the output any more. So
 * `CALL` runs a command under a mark, by which its processes are found, and reports the command's pid and end in its output
 * between two control bytes. These are in no argument, so a list of processes never looks like a report.
 */
const quoted = (script: string): string => `'${script.replaceAll("'", `'\\''`)}'`

export const CALL = `tb_linger=${quoted(findMarked + linger)}\n${findMarked}${killMarked}${call}`
export const KILL = findMarked + killMarked + kill
export const KILL_OTHERS = findMarked + killMarked + killOthers
export const RELAY: string = relay
