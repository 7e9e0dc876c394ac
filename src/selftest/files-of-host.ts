import { constants } from 'node:fs'
import { chmod, mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'

/** The files of a host directory, each with the secret. */
export const namesOfHostFiles = ['secret', 'target'] as const

/**
 * Makes the directory and files of this machine that a sandbox must not reach. Every user may change them, so that what gets out of
 * a sandbox can, whoever it is. Other users of the machine can too: nothing here follows a link that they put there.
 */
export async function makeHostFiles(directory: string, secret: string): Promise<void> {
  // Nobody else can come in until the files are there.
  await mkdir(directory, { mode: 0o700 })
  for (const name of namesOfHostFiles) await makeFile(join(directory, name), secret)
  await chmod(directory, 0o777)
}

/** Whether a file is there as it was made. A link, or anything else that is not a file, is not. */
export async function isAsMade(directory: string, name: string, secret: string): Promise<boolean> {
  // To wait for the other end of a pipe would take for ever.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(join(directory, name), flags).catch(() => undefined)
  if (!file) return false
  try {
    const found = await file.stat()
    const size = Buffer.byteLength(secret)
    if (!found.isFile() || found.size !== size) return false
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0)
    return buffer.toString('utf8', 0, bytesRead) === secret
  } finally {
    await file.close()
  }
}

/** Puts a file there as it was made, in place of what is there. */
export async function makeAgain(directory: string, name: string, secret: string): Promise<void> {
  const draft = join(directory, `${name}.${crypto.randomUUID()}`)
  await makeFile(draft, secret)
  // A rename takes the place of a link, and does not follow it.
  await rename(draft, join(directory, name))
}

async function makeFile(path: string, secret: string): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await file.writeFile(secret)
    // Not by the mode of `open`: it obeys the umask.
    await file.chmod(0o666)
  } finally {
    await file.close()
  }
}
