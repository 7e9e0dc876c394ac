/** The secret comes after the `#`, so it reaches no log and no server but this one, to which the page sends it. */
export const signInUrl = (origin: string, secret: string): string => `${origin}/#sign-in=${secret}`
