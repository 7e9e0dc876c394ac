/** What an API key may do. A key without scopes may do everything. */
export const scopes = ['read', 'chat', 'sandboxes', 'deploy', 'secrets', 'metrics', 'admin'] as const

export type Scope = (typeof scopes)[number]

export const isScope = (text: string): text is Scope => scopes.some(scope => scope === text)
