import type { ModelCall } from '../../model/usage.ts'

const MAX_MODELS = 100

/** Names for a label: those of models that have answered. A caller can ask for any word, but no provider answers by it. */
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
