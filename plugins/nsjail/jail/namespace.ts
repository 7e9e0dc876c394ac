import { ptr } from 'bun:ffi'
import { openSync, writeFileSync } from 'node:fs'
import { type Descriptor, ownDescriptor } from '../../../src/descriptor.ts'
import { checked, libc, text } from '../host/libc.ts'
import { IDS_PER_JAIL } from '../host/user-ids.ts'

const CLONE_VM = 0x100
const CLONE_VFORK = 0x4000
const CLONE_NEWUSER = 0x10000000
/** This flag also waits for a child that sends no signal at its end. */
const WALL = 0x40000000
const STACK_BYTES = 16_384

/** The kernel wants the stack's end at a multiple of 16 bytes. */
const ALIGNMENT = 16

/**
 * Makes a user namespace that maps ids from `from` to ids from `firstId`. It lives as long as the descriptor.
 *
 * A program of many threads cannot unshare its own. So a child is cloned in the new namespace that only calls getppid and ends
 * before this goes on; as a zombie it still has its namespace, until it is waited for.
 */
export function openUserNamespace(firstId: number, from = 0): Descriptor {
  const getppid = text('getppid')
  const stack = new Uint8Array(STACK_BYTES + ALIGNMENT)
  const top = ptr(stack, STACK_BYTES - (Number(ptr(stack)) % ALIGNMENT))
  const child = libc().clone(libc().dlsym(0, ptr(getppid)), top, CLONE_NEWUSER | CLONE_VM | CLONE_VFORK, null)
  checked('clone with a user namespace', child)
  try {
    const map = `${from} ${firstId} ${IDS_PER_JAIL}`
    writeFileSync(`/proc/${child}/uid_map`, map)
    writeFileSync(`/proc/${child}/gid_map`, map)
    return ownDescriptor(openSync(`/proc/${child}/ns/user`, 'r'))
  } finally {
    libc().waitpid(child, null, WALL)
  }
}
