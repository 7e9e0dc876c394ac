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

    test('that was made ahead of its use can be claimed once, if the backend makes such', async () => {
      const { backend } = subject
      if (!backend.claimSpare) return
      const spec = { id: newId('env'), limits: subject.limits }
      const [spare, other] = [await backend.create({ ...spec, isSpare: true }), await create()]
      try {
        const claimed = { ...spec, env: { COLOUR: 'blue' } }
        expect(await Promise.all([backend.claimSpare(claimed), backend.claimSpare(claimed)])).toEqual([true, false])
        expect(await backend.claimSpare({ ...spec, id: other.id })).toBe(false)
        expect(await backend.claimSpare({ ...spec, id: newId('env') })).toBe(false)
        expect((await runCommand(spare, { command: 'echo mine' })).stdout).toBe('mine\n')
      } finally {
        await Promise.all([spare.destroy(), other.destroy()])
      }
    })

    test('that was made ahead of its use and does not run cannot be claimed', async () => {
      const { backend } = subject
      const spec = { id: newId('env'), limits: subject.limits }
      const spare = await backend.create({ ...spec, isSpare: true })
      await spare.pause?.()
      if (spare.pause && backend.claimSpare) expect(await backend.claimSpare(spec)).toBe(false)
      await spare.destroy()
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

    test('tells what it uses, if the backend can, and is not started by the question', async () => {
      const other = await create()
      try {
        if (!other.usage) return
        await runCommand(other, { command: 'head -c 30000000 /dev/urandom > /home/user/big; sync' })
        const usage = await other.usage()
        for (const value of Object.values(usage)) expect(value).toBeGreaterThan(-1)
        if (usage.diskBytes !== undefined) expect(usage.diskBytes).toBeGreaterThan(0)
        if (!other.pause) return
        await other.pause()
        expect(await other.usage()).toEqual({})
        expect(subject.backend.listRunning?.() ?? []).not.toContain(other.id)
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
