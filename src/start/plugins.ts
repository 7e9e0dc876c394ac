import type { Config } from '../core/config.ts'
import type { Plugin, SandboxCopies } from '../plugin-api/index.ts'
import { guestExecutable as executable } from './executable.ts'

/** The plugins of this build, set up by the configuration. None of them does anything before its first use. */
export async function listPlugins(config: Config): Promise<Plugin[]> {
  const { nsjailPath, dockerImage, dockerRuntimes, e2bTemplate: template, publicUrl, idleMs } = config
  const [{ nsjail }, { docker }, { e2b }, { echo }, { aiSdk }, { acp, claudeCode }] = await Promise.all([
    import('nsjail-wrapper'),
    import('../../plugins/docker/index.ts'),
    import('../../plugins/e2b/index.ts'),
    import('../../plugins/echo/index.ts'),
    import('../../plugins/ai-sdk/index.ts'),
    import('../../plugins/agent-programs/index.ts'),
  ])
  return [
    nsjail({ executable, idleMs, ...(nsjailPath && { nsjailPath }) }),
    docker({ executable, idleMs, image: dockerImage, runtimes: dockerRuntimes }),
    e2b({ connection: process.env, template, idleMs, ...(publicUrl !== undefined && { publicUrl }) }),
    echo,
    aiSdk,
    claudeCode,
    acp,
  ]
}

/** The file trees that sandboxes on nsjail can start from, in this data directory. */
export const openBases = async (dataDirectory: string) => (await import('nsjail-wrapper')).openBases(dataDirectory)

/** Lists what backups copy and restore of the sandboxes and bases of a data directory. */
export async function openCopies(dataDirectory: string) {
  const [
    { checkImages, listBaseTrees, nsjailCopies, packBase, unpackTrees },
    { checkCopies, dockerCopies },
    { e2bCopies },
  ] = await Promise.all([
    import('nsjail-wrapper'),
    import('../../plugins/docker/index.ts'),
    import('../../plugins/e2b/index.ts'),
  ])
  const copies = new Map<string, SandboxCopies>([
    ['nsjail', nsjailCopies(dataDirectory)],
    ['docker', dockerCopies(dataDirectory, process.env)],
    ['e2b', e2bCopies(dataDirectory, process.env)],
  ])
  return {
    findCopies: (backend: string) => copies.get(backend),
    listBases: () => listBaseTrees(dataDirectory),
    packBase: (tree: string, archive: string) => packBase(dataDirectory, tree, archive),
    unpackTrees,
    async checkImages(directory: string) {
      await checkImages(directory)
      await checkCopies(directory)
    },
  }
}
