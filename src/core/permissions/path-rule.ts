import { posix } from 'node:path'
import { bounds } from '../../bounds.ts'
import type { JsonObject } from '../../read/json.ts'

/** Where paths of a turn begin. */
export interface Place {
  /** The working directory, absolute. */
  cwd: string
  /** What `~` stands for, absolute. */
  home: string
}

/** A pattern of paths as it is written: `*` and `?` within a name, `**` over any number of names. */
export interface PathPattern {
  type: 'path'
  text: string
}

/** An absolute path without `..`, as tools read it. */
export const resolveIn = ({ cwd, home }: Place, path: string): string =>
  posix.resolve(cwd, path.replace(/^~(?=\/|$)/, home))

/** Writes a path so that it is a pattern of that path alone. */
export const escapePath = (path: string): string => path.replace(/[*?]/g, '\\$&')

/** The files that a call is about, and the directories that it looks through. */
interface Touched {
  files: string[]
  directories: string[]
  /** Whether contents of files in the directories are shown. */
  showsContents: boolean
}

const PATH_FIELDS = ['file_path', 'notebook_path', 'path', 'filePath', 'absolute_path']

function touchedBy(tool: string, input: JsonObject, place: Place): Touched {
  const named = PATH_FIELDS.flatMap(field => {
    const value = input[field]
    return typeof value === 'string' ? [resolveIn(place, value)] : []
  })
  if (tool === 'LS') return { files: named, directories: named.length > 0 ? [] : [place.cwd], showsContents: false }
  if (tool !== 'Glob' && tool !== 'Grep') return { files: named, directories: [], showsContents: false }
  const { pattern } = input
  const isAbsolute = tool === 'Glob' && typeof pattern === 'string' && pattern.startsWith('/')
  const directories = [...named, ...(isAbsolute ? [fixedPart(pattern)] : named.length > 0 ? [] : [place.cwd])]
  return { files: [], directories, showsContents: tool === 'Grep' }
}

/** The directory of a pattern before its first special character. */
function fixedPart(pattern: string): string {
  const special = pattern.search(/[*?[{\\]/)
  return posix.resolve(pattern.slice(0, pattern.lastIndexOf('/', special < 0 ? pattern.length : special) + 1) || '/')
}

/** Whether the pattern covers all that a call is about. */
export function coversPaths({ text }: PathPattern, tool: string, input: JsonObject, place: Place): boolean {
  const { files, directories } = touchedBy(tool, input, place)
  const all = [...files, ...directories]
  if (all.length === 0 || all.some(path => path.length > bounds.path || isOtherRoot(path))) return false
  const pattern = resolveIn(place, text)
  const names = namesOf(pattern)
  if (!files.every(path => matchesNames(namesOf(path), names))) return false
  // A search goes as deep as there are directories.
  return directories.every(path => names.at(-1) === '**' && matchesNames([...namesOf(path), ' '], names))
}

/** Whether a call may be about a path of the pattern. In doubt it is. */
export function couldTouch({ text }: PathPattern, tool: string, input: JsonObject, place: Place): boolean {
  const { files, directories, showsContents } = touchedBy(tool, input, place)
  const all = [...files, ...directories]
  if (all.length === 0 || all.some(path => path.length > bounds.path || isOtherRoot(path))) return true
  // A name alone is meant in any directory.
  const isName = !/^[~/]|\/./.test(text)
  const pattern = resolveIn(place, isName ? `**/${text}` : text)
  const names = namesOf(pattern)
  const within = [...names, '**']
  if (all.some(path => matchesNames(namesOf(path), names) || matchesNames(namesOf(path), within))) return true
  if (!showsContents) return directories.some(path => matchesNames([...namesOf(path), ' '], names))
  return directories.some(path => mayLieWithin(names, namesOf(path)) && !isLeftOut(names, input.glob))
}

/** Other names of paths that the kernel follows. */
const isOtherRoot = (path: string): boolean =>
  /^\/(proc\/[^/]*\/(task\/[^/]*\/)?(root|cwd|fd)|dev\/fd)(\/|$)/.test(path)

const namesOf = (path: string): string[] => path.split('/').filter(Boolean)

/** Whether some path of the pattern can lie in the directory. */
function mayLieWithin(pattern: readonly string[], directory: readonly string[]): boolean {
  for (const [index, name] of directory.entries()) {
    const wanted = pattern[index]
    if (wanted === '**') return true
    if (wanted === undefined || !matchesName(name, wanted)) return false
  }
  return true
}

/** Whether a search for files of some names finds none that the pattern has. */
const isLeftOut = (pattern: readonly string[], glob: unknown): boolean => {
  const last = pattern.at(-1) ?? ''
  const isOneName = last !== '**' && !/[*?\\]/.test(last)
  return isOneName && typeof glob === 'string' && /^[\w.*-]+$/.test(glob) && !matchesName(last, glob)
}

/** Each name is compared a bounded number of times: the lengths of paths and patterns are. */
function matchesNames(path: readonly string[], pattern: readonly string[]): boolean {
  return matchesBy(path, pattern, '**', matchesName)
}

const matchesName = (name: string, pattern: string): boolean =>
  matchesBy([...name], tokens(pattern), STAR, (char, wanted) => wanted === ANY || char === wanted)

/** No character has these names. */
const STAR = 'any characters'
const ANY = 'any character'

function tokens(pattern: string): string[] {
  const chars = [...pattern]
  return chars.flatMap((char, index) => {
    if (chars[index - 1] === '\\' && (char === '*' || char === '?')) return [char]
    if (char === '\\' && (chars[index + 1] === '*' || chars[index + 1] === '?')) return []
    return [char === '*' ? STAR : char === '?' ? ANY : char]
  })
}

/** Matches items where `star` stands for any number of them. Goes back to the last star alone: no more is needed. */
function matchesBy(
  items: readonly string[],
  pattern: readonly string[],
  star: string,
  matches: (item: string, wanted: string) => boolean,
): boolean {
  let at = 0
  let wantedAt = 0
  let starAt = -1
  let resumeAt = 0
  while (at < items.length) {
    const wanted = pattern[wantedAt]
    if (wanted === star) {
      starAt = wantedAt++
      resumeAt = at
    } else if (wanted !== undefined && matches(items[at] ?? '', wanted)) {
      at++
      wantedAt++
    } else if (starAt >= 0) {
      wantedAt = starAt + 1
      at = ++resumeAt
    } else return false
  }
  while (pattern[wantedAt] === star) wantedAt++
  return wantedAt === pattern.length
}
