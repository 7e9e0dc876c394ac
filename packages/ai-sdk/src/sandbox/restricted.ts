import type { Experimental_SandboxSession as SandboxSession } from '@ai-sdk/provider-utils'
import { createFiles } from './files.ts'
import type { Place } from './place.ts'
import { createProcesses } from './processes.ts'

/** A session with files and commands only: it cannot stop the sandbox or change its network. */
export const createRestricted = (place: Place, ports: () => readonly number[]): SandboxSession => ({
  get description() {
    const opened = ports().join(', ')
    return [
      'A Linux sandbox. Commands run in bash, as root of the sandbox.',
      `Commands and relative paths begin in ${place.defaultWorkingDirectory}.`,
      'Programs reach the network by rules of the sandbox; the variables HTTP_PROXY and HTTPS_PROXY name its proxy.',
      ...(opened === '' ? [] : [`Servers that listen on port ${opened} can be reached from outside.`]),
    ].join('\n')
  },
  ...createFiles(place),
  ...createProcesses(place),
})
