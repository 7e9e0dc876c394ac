import type { Runtime } from '../core/runtime.ts'
import { classOf } from '../core/sandboxes/choose-backend.ts'
import type { Sandbox } from '../model/sandbox.ts'
import type { Use } from '../model/use.ts'

/** Describes a sandbox in a few fields, with what it uses now. */
export async function summary(runtime: Runtime, sandbox: Sandbox) {
  const [use] = await runtime.uses.now([sandbox])
  return toSummary(runtime, sandbox, { running: runtime.environments.findRunning(sandbox.backend), use })
}

/** Describes sandboxes as `summary` does. */
export async function summaries(runtime: Runtime, sandboxes: readonly Sandbox[]) {
  const uses = await runtime.uses.now(sandboxes)
  const names = new Set(sandboxes.map(({ backend }) => backend))
  const running = new Map([...names].map(name => [name, runtime.environments.findRunning(name)]))
  return sandboxes.map((sandbox, index) =>
    toSummary(runtime, sandbox, { running: running.get(sandbox.backend), use: uses[index] }),
  )
}

interface Seen {
  running: ReadonlySet<string> | undefined
  use: Use | undefined
}

function toSummary(runtime: Runtime, sandbox: Sandbox, { running, use }: Seen) {
  const trouble = runtime.environments.troubleOf(sandbox)
  return {
    id: sandbox.id,
    sandboxId: sandbox.environmentId,
    name: sandbox.name ?? null,
    status: trouble === undefined ? sandbox.status : 'error',
    error: trouble ?? sandbox.error ?? null,
    isRunning: running?.has(sandbox.environmentId) ?? null,
    use: use ? describeUse(use) : null,
    agent: { slug: sandbox.agentSlug, name: sandbox.agentName },
    provider: sandbox.backend,
    isolation: { kind: classOf(runtime, sandbox) },
    createdAt: sandbox.createdAt,
    updatedAt: sandbox.updatedAt,
  }
}

/** Describes what a sandbox uses, with null for what its backend does not tell. */
export const describeUse = ({ at, memoryBytes, diskBytes, cpus, processes }: Use) => ({
  at: new Date(at).toISOString(),
  memoryBytes: memoryBytes ?? null,
  diskBytes: diskBytes ?? null,
  cpus: cpus ?? null,
  processes: processes ?? null,
})

/** What confines a sandbox. An environment that cannot be opened has no details; its sandbox is shown all the same. */
export async function describeEnvironment(runtime: Runtime, sandbox: Sandbox) {
  const environment = await runtime.environments.get(sandbox).catch(() => undefined)
  const kind = environment?.isolation ?? classOf(runtime, sandbox)
  return { isolation: { kind, details: environment?.confinement ?? [] }, limits: environment?.limits ?? {} }
}
