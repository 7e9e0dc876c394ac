import type { Check } from '../../src/plugin.ts'
import type { DockerEngine } from './engine.ts'

export interface ProbeOptions {
  dataDirectory: string
  image: string
  executable: string
  dataId: string
  log(line: string): void
}

export async function probeEngine(_engine: DockerEngine, _options: ProbeOptions): Promise<Check[]> {
  return []
}
