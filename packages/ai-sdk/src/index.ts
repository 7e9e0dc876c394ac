export * from './chat/index.ts'
export { createThreadboxSandbox, type ThreadboxSandboxProvider } from './sandbox/provider.ts'
export type { ThreadboxSandboxSettings } from './sandbox/settings.ts'
