// A backend around another one: nsjail's jails, no more than FEW_JAILS of them (20) at once.
import { ApiError, type Plugin } from 'threadbox'
// From a checkout of threadbox, which has nsjail in .cache once it was built.
import { createNsjailBackend } from '../../plugins/nsjail/index.ts'

const most = Number(process.env.FEW_JAILS ?? 20)
const nsjailPath = new URL('../../.cache/nsjail/bin/nsjail', import.meta.url).pathname

export default {
  name: 'few-jails',
  backend(context) {
    const dataDirectory = `${context.dataDirectory}/few-jails`
    // Without `claimSpare` the server makes no spares, each of which would count here.
    const { claimSpare: _, ...jails } = createNsjailBackend({ ...context, dataDirectory, nsjailPath })
    const beingMade = new Set<string>()
    return {
      ...jails,
      name: 'few-jails',
      async create(spec) {
        // Noted before anything is awaited: two creates at once cannot both take the last place.
        beingMade.add(spec.id)
        try {
          const taken = new Set([...(await jails.list()), ...beingMade])
          if (taken.size > most) throw new ApiError('conflict', `There are ${most} sandboxes: delete one first.`)
          return await jails.create(spec)
        } finally {
          beingMade.delete(spec.id)
        }
      },
    }
  },
} satisfies Plugin
