import { existsSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Address } from './backup-place.ts'
import { timeOfFile } from './format.ts'
import { directoryPlace } from './place-directory.ts'
import { bucketPlace } from './place-s3.ts'

/**
 * Reads `FILE`, `DIR` or `s3://bucket/…`. A text that ends like a backup's name, or that names a file, means one backup; any
 * other means a place for several.
 */
export function openAddress(text: string, environment: NodeJS.ProcessEnv): Address {
  if (text.startsWith('s3://')) {
    const [bucket = '', ...folders] = text.slice('s3://'.length).split('/')
    const path = folders.join('/')
    if (bucket === '') throw new Error(`${text}: must be s3://BUCKET or s3://BUCKET/PREFIX`)
    if (!isFileName(path)) return { place: bucketPlace(bucket, path.replace(/\/$/, ''), environment) }
    const prefix = path.includes('/') ? dirname(path) : ''
    return { place: bucketPlace(bucket, prefix, environment), name: basename(path) }
  }
  const path = resolve(text)
  const isDirectory = existsSync(path) ? statSync(path).isDirectory() : text.endsWith('/') || !isFileName(text)
  if (isDirectory) return { place: directoryPlace(path) }
  return { place: directoryPlace(dirname(path)), name: basename(path) }
}

const isFileName = (path: string): boolean => timeOfFile(basename(path)) !== undefined || /\.(zst|age|tar)$/.test(path)
