import { withMembers } from '../../environment/with-members.ts'
import type { Cause } from '../../model/observation.ts'
import type { Environment, EnvironmentFiles } from '../../plugin-api/index.ts'
import type { Runtime } from '../runtime.ts'

/** Who does the observed work. `runId` is set when an agent's engine does it. */
export interface Work {
  teamId: string
  sandboxId: string
  runId?: string
  cause: Cause
}

/** Returns the environment with each change of a file reported as this work's. */
export const observeFiles = (runtime: Runtime, work: Work, environment: Environment): Environment =>
  withMembers(environment, { files: observedFiles(runtime, work, environment.files) })

function observedFiles({ observers: { observe } }: Runtime, work: Work, files: EnvironmentFiles): EnvironmentFiles {
  type Change = { how: 'write' | 'remove' | 'makeDirectory' | 'rename'; path: string; toPath?: string }
  const observed = async <Result>(change: Change, doing: Promise<Result>): Promise<Result> => {
    const about = { type: 'file.changed', ...work, ...change } as const
    try {
      const result = await doing
      observe({ ...about, outcome: 'done', ...(typeof result === 'number' && { sizeBytes: result }) })
      return result
    } catch (error) {
      observe({ ...about, outcome: 'failed' })
      throw error
    }
  }
  return withMembers(files, {
    write: (path, body, signal, details) => observed({ how: 'write', path }, files.write(path, body, signal, details)),
    makeDirectory: (path, details) => observed({ how: 'makeDirectory', path }, files.makeDirectory(path, details)),
    rename: (path, toPath) => observed({ how: 'rename', path, toPath }, files.rename(path, toPath)),
    remove: path => observed({ how: 'remove', path }, files.remove(path)),
  })
}
