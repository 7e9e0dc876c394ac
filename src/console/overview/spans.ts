/** The beginning of this day, and of this month, in UTC as the server counts. */
export const dayOf = (at: Date) => at.toISOString().slice(0, 10)
export const monthOf = (at: Date) => `${at.toISOString().slice(0, 7)}-01`
