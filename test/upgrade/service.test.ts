import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { findServerProcess } from '../../src/cli/running-servers.ts'
import { executable as built, command, patiently, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'
import { freePort } from './free-port.ts'

patiently()

/** A systemctl that knows one unit, as far as an upgrade asks it. */
const root = temporaryDirectory()
const at = (name: string) => join(root, name)
const executable = at('threadbox')
const port = freePort()

beforeAll(() => {
  copyFileSync(built, executable)
  mkdirSync(at('programs'))
  writeFileSync(
    at('programs/systemctl'),
    `#!/bin/bash
echo "$*" >>${at('asked')}
begin() { setsid ${executable} serve --spares 0 --port ${port} --data-dir ${at('data')} >>${at('log')} 2>&1 & echo $! >${at('pid')}; }
finish() { kill "$(<${at('pid')})"; while kill -0 "$(<${at('pid')})" 2>&-; do sleep 0.02; done; }
[ "$1" = --no-block ] && shift
case "$1" in
  start) begin ;;
  stop) finish ;;
  restart) finish; begin ;;
  show) echo "MainPID=$(<${at('pid')})"; echo ActiveState=active; echo NRestarts=0 ;;
esac
`
      .replace('echo "MainPID=$(<', 'case "$2" in *MainPID*) echo "MainPID=$(<')
      .replace(
        '; echo ActiveState=active; echo NRestarts=0',
        ';; *) echo ActiveState=active; echo NRestarts=0 ;; esac',
      ),
  )
  chmodSync(at('programs/systemctl'), 0o755)
})
afterAll(async () => {
  await systemctl('stop')
  rmSync(root, { recursive: true })
})

const env = { PATH: `${at('programs')}:/usr/sbin:/usr/bin:/sbin:/bin` }
const systemctl = async (...args: string[]) =>
  await Bun.spawn([at('programs/systemctl'), ...args], { env, stdio: ['ignore', 'ignore', 'ignore'] }).exited
const asked = () => readFileSync(at('asked'), 'utf8').split('\n')

test('the server of the unit is restarted by systemctl', async () => {
  await systemctl('start')
  await until(() => existsSync(at('log')) && readFileSync(at('log'), 'utf8').includes('listening'))
  const before = findServerProcess(at('data'))
  copyFileSync(built, at('next'))
  appendFileSync(at('next'), '\n')
  const { code, stdout, stderr } = await command(['upgrade', at('next'), '--data-dir', at('data')], {
    command: [executable],
    env,
  })
  expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining('is ready')])
  expect(asked()).toContain('--no-block restart threadbox')
  expect([findServerProcess(at('data')) === before, readFileSync(executable).equals(readFileSync(at('next')))]).toEqual(
    [false, true],
  )
})
