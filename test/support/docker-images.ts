import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DockerApi } from './docker-api.ts'
import { run } from './dockerd.ts'

const root = join(import.meta.dir, '../..')
const forCommands = ['python3-minimal', 'libpython3-stdlib', 'procps']
const forClients = ['ca-certificates', 'curl', 'git', 'libpython3-stdlib', 'openssh-client', 'python3-minimal']
const unneeded = [
  'var/cache/apt',
  'var/lib/apt/lists',
  'usr/share/doc',
  'usr/share/man',
  'usr/share/locale',
  'usr/share/info',
]

/** Debian with what the contract's commands need, as `debian`. It is brought once: it takes half a minute. */
export const importDebian = (docker: DockerApi) => importPackages(docker, 'debian', forCommands)

/** Debian with clients of HTTPS and SSH, as `clients`. It is brought once: it takes a minute. */
export const importClients = (docker: DockerApi) => importPackages(docker, 'clients', forClients)

async function importPackages(docker: DockerApi, name: string, packages: readonly string[]): Promise<void> {
  const cached = join(root, `.cache/debian-bookworm-${packages.join('-')}.tar`)
  if (!existsSync(cached)) await inDirectory(directory => bringDebian(directory, packages, cached))
  await docker.import(name, cached)
}

async function bringDebian(directory: string, packages: readonly string[], to: string): Promise<void> {
  const system = join(directory, 'root')
  await run('debootstrap', '--variant=minbase', `--include=${packages}`, 'bookworm', system)
  for (const path of unneeded) rmSync(join(system, path), { recursive: true, force: true })
  const archive = `${to}.${process.pid}`
  await run('tar', '-C', system, '-cf', archive, '.')
  renameSync(archive, to)
}

/** One static program and no library, with another PATH than usual. */
export const importBusybox = (docker: DockerApi) =>
  inDirectory(async directory => {
    await putBusybox(directory, '/tools')
    await docker.import('busybox', directory, [
      'ENV PATH=/tools',
      'ENV LD_PRELOAD=/nowhere.so',
      'ENV GREETING="hello you"',
    ])
  })

/** The same root file system, as a tar. */
export async function busyboxLayer(): Promise<Uint8Array<ArrayBuffer>> {
  let layer: Uint8Array<ArrayBuffer> = new Uint8Array()
  await inDirectory(async directory => {
    await putBusybox(directory, '/tools')
    layer = new Uint8Array(await Bun.spawn(['tar', '-C', directory, '-c', '.'], { stdout: 'pipe' }).stdout.bytes())
  })
  return layer
}

/** As Alpine: musl's loader, a program that is linked to it, and busybox. */
export const importMusl = (docker: DockerApi) =>
  inDirectory(async directory => {
    await putBusybox(directory, '/bin')
    mkdirSync(join(directory, 'lib'))
    copyFileSync('/lib/x86_64-linux-musl/libc.so', join(directory, 'lib/ld-musl-x86_64.so.1'))
    await Bun.write(join(directory, 'hello.c'), '#include <stdio.h>\nint main(void) { puts("from musl"); }\n')
    await run('musl-gcc', '-o', join(directory, 'bin/hello'), join(directory, 'hello.c'))
    await docker.import('musl', directory)
  })

async function putBusybox(directory: string, place: string): Promise<void> {
  const at = join(directory, place)
  mkdirSync(at, { recursive: true })
  copyFileSync('/bin/busybox', join(at, 'busybox'))
  chmodSync(join(at, 'busybox'), 0o755)
  const names = await Bun.spawn(['/bin/busybox', '--list'], { stdout: 'pipe' }).stdout.text()
  for (const name of names.trim().split('\n')) if (name !== 'busybox') symlinkSync('busybox', join(at, name))
  mkdirSync(join(directory, 'bin'), { recursive: true })
  if (place !== '/bin') symlinkSync(join(place, 'busybox'), join(directory, 'bin/sh'))
}

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-image-'))
  try {
    await work(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}
