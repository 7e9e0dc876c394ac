import { proxyVariables } from '../wire/proxy-variables.ts'
import type { CommandRequest } from '../wire/requests.ts'
import type { Person } from './person.ts'

export const HOME = '/home/user'

const base = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME,
  USER: 'root',
  LOGNAME: 'root',
  ...proxyVariables,
}

/** This locale has only the characters: with LANG=C.UTF-8 each program would open the files of all twelve categories. */
const locale = { LC_CTYPE: 'C.UTF-8' }

/**
 * What a command finds in its environment: the request's variables over the image's over ours. Without SHELL, bash would
 * look the user up at each start.
 */
export function variablesOf(
  { env, pty }: Pick<CommandRequest, 'env' | 'pty'>,
  ofImage: Readonly<Record<string, string>>,
  { cwd, shell, person }: { cwd: string; shell: string; person?: Person },
): Record<string, string> {
  const given = { ...ofImage, ...env }
  return {
    ...base,
    SHELL: shell,
    // When somebody chose a language, that names the characters too.
    ...(given.LANG === undefined && locale),
    ...ofImage,
    ...(person && { HOME: person.home, USER: person.name, LOGNAME: person.name }),
    PWD: cwd,
    ...(pty && { TERM: 'xterm-256color' }),
    ...env,
  }
}
