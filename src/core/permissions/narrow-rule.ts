import { bounds } from '../../bounds.ts'
import { escapePath, type Place, resolveIn } from './path-rule.ts'
import { type Call, findAllowing, hostOf, parseRule, type Rule, readCall } from './rule.ts'
import { groups, isEditTool } from './tool-names.ts'
import { escapeStars } from './wildcards.ts'

/**
 * The narrowest rule that allows a call again, for a person who says "always": a command as it is written, one file, one
 * site, else the tool. Undefined when no rule can say it.
 */
export function narrowRule(name: string, input: unknown, place: Place): string | undefined {
  const call = readCall(name, input, place)
  const text = write(name, call.input, place)
  if (text === undefined || text.length > bounds.permissionRule) return undefined
  try {
    return allowsAgain(parseRule(text), call) ? text : undefined
  } catch {
    // What the call has cannot be written as a rule.
    return undefined
  }
}

/** Whether a remembered rule allows a call. The name of a tool is that tool alone: others may begin with it. */
export const allowsAgain = (rule: Rule, call: Call): boolean =>
  rule.pattern ? findAllowing([rule], call) !== undefined : rule.text === call.name

function write(name: string, input: Record<string, unknown>, place: Place): string | undefined {
  if (name === 'Bash') return typeof input.command === 'string' ? `Bash(${escapeStars(input.command)})` : undefined
  if (name === 'WebFetch') return `WebFetch(domain:${hostOf(input.url) ?? ''})`
  const path = input.file_path ?? input.notebook_path ?? input.path
  if (isEditTool(name)) return typeof path === 'string' ? `Edit(${escapePath(resolveIn(place, path))})` : undefined
  if (name === 'Read') return typeof path === 'string' ? `Read(${escapePath(resolveIn(place, path))})` : undefined
  if (groups.Read?.includes(name)) {
    const directory = resolveIn(place, typeof path === 'string' ? path : '.')
    return `Read(${escapePath(directory === '/' ? '' : directory)}/**)`
  }
  return name
}
