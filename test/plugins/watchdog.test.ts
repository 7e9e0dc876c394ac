import { expect, test } from 'bun:test'
import { join } from 'node:path'

test.each([0, 2, 5, 8])(
  'with %i descriptors free, a watchdog does without its thread and does not end the process',
  async free => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'few-descriptors.ts'), `${free}`], {
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [printed, problems, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    expect({ printed, problems, exitCode }).toEqual({ printed: 'loaded\nmade\nwatched\n', problems: '', exitCode: 0 })
  },
)
