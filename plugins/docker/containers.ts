import { objectOf, objectsOf } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'
import { type CreatedWith, labels, parseCreatedWith } from './labels.ts'

/** A container of this data directory, as the engine lists it. */
export interface KnownContainer {
  environmentId: string
  imageId: string
  isRunning: boolean
  /** Undefined when its label is damaged. */
  createdWith: CreatedWith | undefined
}

export async function listContainers(engine: DockerEngine, dataId: string): Promise<KnownContainer[]> {
  const filters = JSON.stringify({ label: [`${labels.data}=${dataId}`] })
  const list = await engine.call('GET', '/containers/json', { query: { all: 'true', filters } })
  return objectsOf(list).flatMap(({ ImageID, State, Labels }) => {
    const given = objectOf(Labels) ?? {}
    const environmentId = given[labels.environment]
    if (typeof environmentId !== 'string') return []
    const createdWith = parseCreatedWith(given[labels.createdWith])
    return [{ environmentId, imageId: String(ImageID), isRunning: State === 'running', createdWith }]
  })
}
