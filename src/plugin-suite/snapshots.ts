import { newId } from '../db/id.ts'
import { runCommand } from '../environment/run-command.ts'
import type { Environment, Snapshots } from '../plugin-api/index.ts'
import type { Kit } from './kit.ts'
import type { BackendSubject } from './subject.ts'

const TIMEOUT_MS = 120_000

/** Tests the snapshots of a backend that takes them. */
export function describeSnapshots({ describe, test, expect }: Kit, subject: BackendSubject): void {
  const shell = async (environment: Environment, command: string) => {
    const { stdout, stderr, exitCode } = await runCommand(environment, { command, timeoutMs: 20_000 })
    return exitCode === 0 ? stdout : `${stdout}${stderr}`
  }
  const from = (snapshot: string) => subject.backend.create({ id: newId('env'), limits: subject.limits, snapshot })
  const take = async (snapshots: Snapshots, environment: Environment) => {
    const id = newId('snap')
    const taken = await snapshots.take(environment.id, id)
    expect(taken.frozenMs).toBeGreaterThan(-1)
    expect(['reflink', 'layers', 'copy']).toContain(taken.method)
    expect(['reflink', 'layers', 'copy']).toContain(taken.forkMethod)
    return id
  }

  const isRefused = (made: Promise<unknown>) =>
    made.then(
      () => false,
      () => true,
    )

  describe('a snapshot, if the backend takes them', () => {
    test(
      'begins environments with its files, which see nothing of each other and of the first',
      async () => {
        const { snapshots } = subject.backend
        if (!snapshots) return
        const made: Environment[] = [await subject.create()]
        const [first] = made as [Environment]
        await shell(first, 'echo kept > a; ln a b; ln -s a c; mkdir d; echo x > d/x; chmod 600 a; chmod 000 d/x; sync')
        await shell(
          first,
          'rm -f /etc/hostname; rm -rf /var/mail; mkdir -p /usr/local/bin; echo y > /usr/local/bin/own',
        )
        await shell(first, '(sleep 7120 >/dev/null 2>&1 &)')
        const id = await take(snapshots, first)
        try {
          await shell(first, 'echo changed > a; rm -rf d; echo later > e')
          expect(await subject.sleepers('7120', first)).toBe(1)
          made.push(...(await Promise.all([from(id), from(id)])))
          const [, one, two] = made as [Environment, Environment, Environment]
          const look =
            'cat a c; stat -c "%a %U" a; cat d/x /usr/local/bin/own; ls; ls /etc/hostname /var/mail 2>&1 | wc -l'
          const seen = 'kept\nkept\n600 root\nx\ny\na\nb\nc\nd\n2\n'
          expect([await shell(one, look), await shell(two, look)]).toEqual([seen, seen])
          expect(await subject.sleepers('7120', one)).toBe(0)
          await Promise.all([shell(one, 'echo one >> b; rm -r d; echo 1 > /own'), shell(two, 'echo two > d/x')])
          expect(await shell(one, 'cat b; ls /own; ls')).toBe('kept\none\n/own\na\nb\nc\n')
          expect(await shell(two, 'cat b d/x; ls; ls /own 2>/dev/null')).toBe('kept\ntwo\na\nb\nc\nd\n')
          expect(await shell(first, 'cat a; ls')).toBe('changed\na\nb\nc\ne\n')
        } finally {
          await Promise.all(made.map(each => each.destroy()))
          expect(await snapshots.remove(id)).toBe(true)
        }
      },
      TIMEOUT_MS,
    )

    test(
      'outlives its environment, and what is made of it outlives both, through a stop and a fork of its own',
      async () => {
        const { snapshots } = subject.backend
        if (!snapshots) return
        const first = await subject.create()
        await shell(first, 'echo 1 > one; echo gone > two')
        const old = await take(snapshots, first)
        await first.destroy()
        const second = await from(old)
        await shell(second, 'echo 2 > two; rm one')
        await second.pause?.()
        const young = await take(snapshots, second)
        const third = await from(young)
        try {
          // Shared files stay, and the backend decides which are shared.
          await snapshots.remove(old)
          await second.destroy()
          await third.pause?.()
          expect(await shell(third, 'cat two; ls; echo 3 > one; cat one')).toBe('2\ntwo\n3\n')
        } finally {
          await third.destroy()
          expect([await snapshots.remove(young), await snapshots.remove(old)]).toEqual([true, true])
          expect([await snapshots.remove(young), await snapshots.remove(newId('snap'))]).toEqual([true, true])
        }
      },
      TIMEOUT_MS,
    )

    test(
      'of an environment that is not there, or that is not to be taken any more, leaves nothing',
      async () => {
        const { snapshots } = subject.backend
        if (!snapshots) return
        const [missing, aborted] = [newId('snap'), newId('snap')]
        expect(await isRefused(snapshots.take(newId('env'), missing))).toBe(true)
        const reason = new Error('nobody waits')
        await expect(snapshots.take(subject.environment.id, aborted, AbortSignal.abort(reason))).rejects.toBe(reason)
        for (const id of [missing, aborted]) expect(await isRefused(from(id))).toBe(true)
      },
      TIMEOUT_MS,
    )
  })
}
