import { type JsonObject, objectOf } from '../read/json.ts'

/** A name that ends with `?` may be absent. */
type Field = 'string' | 'function' | 'strings' | readonly string[] | { readonly [name: string]: Field }

const shapes = {
  backend: {
    name: 'string',
    isolation: ['namespaces', 'container', 'gvisor', 'microvm'],
    'egress?': ['proxy', 'own'],
    ...{ check: 'function', create: 'function', open: 'function', list: 'function', close: 'function' },
    ...{ 'claimSpare?': 'function', 'isolationOf?': 'function' },
  },
  engine: { name: 'string', run: 'function' },
  environment: {
    id: 'string',
    confinement: 'strings',
    ...{ spawn: 'function', connect: 'function', destroy: 'function', 'hostOf?': 'function', 'usage?': 'function' },
    files: {
      ...{ read: 'function', write: 'function', info: 'function', list: 'function' },
      ...{ makeDirectory: 'function', rename: 'function', remove: 'function' },
    },
  },
} as const satisfies Record<string, Field>

/** Lists the fields of an interface that a plugin's value lacks or has with a wrong type. Undefined when it fits. */
export function findShapeProblems(kind: keyof typeof shapes, value: unknown): string | undefined {
  if (value instanceof Promise) return 'it is a promise'
  return listProblems(shapes[kind], value, '').join(', ') || undefined
}

function listProblems(field: Field, value: unknown, name: string): string[] {
  if (typeof field === 'string') return fits(field, value) ? [] : [`${name} is not a ${words[field]}`]
  if (isChoice(field))
    return field.some(choice => choice === value) ? [] : [`${name} is not one of ${field.join(', ')}`]
  const object: JsonObject | undefined = objectOf(value)
  if (!object) return [`${name || 'it'} is not an object`]
  return Object.entries(field).flatMap(([key, its]) => {
    const each = key.replace(/\?$/, '')
    if (each !== key && object[each] === undefined) return []
    return listProblems(its, object[each], name ? `${name}.${each}` : each)
  })
}

const words = { string: 'string', function: 'function', strings: 'list of strings' } as const

function fits(field: keyof typeof words, value: unknown): boolean {
  if (field === 'strings') return Array.isArray(value) && value.every(each => typeof each === 'string')
  return typeof value === field
}

const isChoice = (field: Field): field is readonly string[] => Array.isArray(field)
