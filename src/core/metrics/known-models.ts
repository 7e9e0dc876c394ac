import type { ModelCall } from '../../model/usage.ts'

const MAX_MODELS = 100

/**
 * Remembers the names of models that have answered, for a label. A caller can ask for any name, but no provider answers to an
 * invented one.
 */
export function createKnownModels() {
  const known = new Set<string>()
  return {
    nameOf({ provider, model, status }: Pick<ModelCall, 'provider' | 'model' | 'status'>): string {
      const key = `${provider}/${model}`
      if (status === 'completed' && known.size < MAX_MODELS) known.add(key)
      return known.has(key) ? model : 'other'
    },
  }
}
