/** This provider's name in the AI SDK. */
export const PROVIDER_ID = 'threadbox'
