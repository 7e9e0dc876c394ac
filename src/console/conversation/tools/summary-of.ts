import { listField, textField } from './view.ts'

const telling = ['description', 'command', 'file_path', 'path', 'pattern', 'url', 'query', 'prompt'] as const

/** A call in one line. */
export function summaryOf(name: string, input: unknown): string {
  if (name === 'TodoWrite') return `${listField(input, 'todos').length} tasks`
  for (const field of telling) {
    const text = textField(input, field)
    if (text) return text.split('\n')[0] ?? ''
  }
  return ''
}
