/** The secret is behind the `#`: no log has it, nor any server but ours. */
export const signInUrl = (origin: string, secret: string): string => `${origin}/#sign-in=${secret}`
