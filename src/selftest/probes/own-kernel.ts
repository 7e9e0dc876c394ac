import type { Subject } from '../subject.ts'

/** Excuses a probe that changes the kernel when the sandbox has its own kernel. */
export function excuseOwnKernel({ isolation }: Pick<Subject, 'isolation'>): string | undefined {
  const isOwn = isolation === 'gvisor' || isolation === 'microvm'
  return isOwn ? 'The sandbox has its own kernel, and changes or uses only that.' : undefined
}
