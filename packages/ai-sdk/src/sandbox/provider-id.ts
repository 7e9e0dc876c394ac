/** What the AI SDK calls this provider. */
export const PROVIDER_ID = 'threadbox'
