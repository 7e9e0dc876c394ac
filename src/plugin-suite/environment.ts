import { newId } from '../db/id.ts'
import { runCommand } from '../environment/run-command.ts'
import type { Kit } from './kit.ts'
import type { BackendSubject } from './subject.ts'
import { until } from './until.ts'

/** Tests an environment from its creation to its end, also across a restart of the server. */
export function describeEnvironment({ describe, test, expect }: Kit, subject: BackendSubject): void {
  const { open, create, shell, sleepers } = subject

  describe('an environment', () => {
    test('is apart from another one', async () => {
      const other = await create()
      try {
        await other.files.write('/tmp/secret', Buffer.from('other'))
        expect((await shell('find / -xdev -name secret -newer /etc/hostname 2>/dev/null')).stdout).toBe('')
        const child = await other.spawn({ command: 'sleep 7105' })
        expect(await sleepers('7105')).toBe(0)
        child.kill()
        await child.exited
      } finally {
        await other.destroy()
      }
    })

    test('keeps files through a pause, and starts again with its next use', async () => {
      const other = await create()
      try {
        await other.files.write('/home/user/kept', Buffer.from('kept'))
        const child = await other.spawn({ command: 'sleep 7106' })
        await other.pause?.()
        await expect(child.exited).rejects.toMatchObject({ code: 'sandbox_unavailable' })
        expect([(await runCommand(other, { command: 'cat kept' })).stdout, await sleepers('7106', other)]).toEqual([
          'kept',
          0,
        ])
      } finally {
        await other.destroy()
      }
    })

    test('is found by another instance of the backend, with what runs in it', async () => {
      const made = await create()
      await runCommand(made, { command: 'echo here > /tmp/f; sleep 7107 &' })
      await until(async () => (await sleepers('7107', made)) === 1)
      await subject.backend.close()
      subject.backend = await open()
      expect(await subject.backend.list()).toContain(made.id)
      const found = await subject.backend.open(made.id)
      if (!found) throw new Error('not found')
      expect([(await runCommand(found, { command: 'cat /tmp/f' })).stdout, await sleepers('7107', found)]).toEqual([
        'here\n',
        1,
      ])
      await found.destroy()
      const again = await subject.backend.open(subject.environment.id)
      if (!again) throw new Error('the first environment is lost')
      subject.environment = again
    })

    test('is gone when destroy resolves, also a second time', async () => {
      const other = await create()
      const child = await other.spawn({ command: 'sleep 7108' })
      await Promise.all([other.destroy(), other.destroy()])
      await other.destroy()
      await expect(child.exited).rejects.toMatchObject({ code: 'sandbox_unavailable' })
      expect(await subject.backend.open(other.id)).toBeUndefined()
      expect(await subject.backend.list()).not.toContain(other.id)
    })

    test('that never was is not found', async () => {
      expect(await subject.backend.open(newId('env'))).toBeUndefined()
      expect(await subject.backend.open('../../etc')).toBeUndefined()
    })
  })
}
