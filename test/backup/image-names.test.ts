import { afterAll, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readImage } from '../../plugins/docker/load-image.ts'

/** Images of a backup that would take a name which the engine has for an image of its own. */

const place = mkdtempSync(join(tmpdir(), 'threadbox-image-names-'))
afterAll(() => rmSync(place, { recursive: true }))

const PLAIN = { Config: 'config', RepoTags: null, Layers: ['layer'] }
const NAMED = '[{"Config":"config","RepoTags":["debian:stable"],"Layers":["layer"]}]'

/** Packs an archive as `docker save` makes it, with other members and tar's own flags. */
function pack(members: Record<string, string>, links: Record<string, string> = {}, flags: string[] = []): string {
  const directory = join(place, crypto.randomUUID())
  const all = { config: '{}', layer: '', 'manifest.json': JSON.stringify([PLAIN]), ...members }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  for (const [name, to] of Object.entries(links)) {
    rmSync(join(directory, name), { force: true })
    symlinkSync(to, join(directory, name))
  }
  const names = [...new Set([...Object.keys(all), ...Object.keys(links)])]
  execFileSync('tar', ['-cf', `${directory}.tar`, '-C', directory, ...flags, ...names])
  return `${directory}.tar`
}

test('an image without a name is read', async () => {
  await readImage(pack({ 'index.json': '{"manifests":[{"annotations":{"a":"b"}}]}' }))
  await readImage(pack({ 'manifest.json': JSON.stringify([{ ...PLAIN, RepoTags: [] }]) }))
})

test.each([
  ['as it is written', NAMED],
  ['with an escape', NAMED.replace('RepoTags', 'RepoTag\\u0073')],
  ['in small letters', NAMED.replace('RepoTags', 'repotags')],
  ['by a letter that folds to another', NAMED.replace('RepoTags', 'RepoTagſ')],
])('an image of a backup takes no name %s regression', async (_, manifest) => {
  await expect(readImage(pack({ 'manifest.json': manifest }))).rejects.toThrow('has a name')
})

test('an image of a backup takes no name by an index with escapes regression', async () => {
  const index = '{"manifests":[{"annotations":{"io.containerd.im\\u0061ge.name":"debian:stable"}}]}'
  await expect(readImage(pack({ 'index.json': index }))).rejects.toThrow('has a name')
})

test('an image of a backup takes no name by another path to its list regression', async () => {
  const aside = pack({ 'x/manifest.json': NAMED }, {}, ['--transform', 's,^x/,x/../,', '-P'])
  await expect(readImage(aside)).rejects.toThrow('has a name')
  const linked = pack({ other: NAMED }, { 'manifest.json': 'other' })
  await expect(readImage(linked)).rejects.toThrow('which is no file')
})
