import type { Subject } from '../subject.ts'

/** Excuses what changes a kernel of which the sandbox has one of its own. */
export function excuseOwnKernel({ isolation }: Pick<Subject, 'isolation'>): string | undefined {
  const isOwn = isolation === 'gvisor' || isolation === 'microvm'
  return isOwn ? 'The sandbox has a kernel of its own, and changes or uses that alone.' : undefined
}
