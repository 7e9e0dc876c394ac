/** How much is measured. */
export interface CapacitySizes {
  sandboxes: number
  /** How long a server may take to come to rest. */
  settleMs: number
  /** For how long chats are sent, and how many at once. */
  chatsMs: number
  atOnce: number
  readers: number
  events: number
}

/** These sizes take about a minute. */
export const full: CapacitySizes = {
  sandboxes: 20,
  settleMs: 1500,
  chatsMs: 15_000,
  atOnce: 8,
  readers: 5200,
  events: 60,
}

/** These sizes take a few seconds. There are more readers than one key may have at once. */
export const quick: CapacitySizes = { sandboxes: 3, settleMs: 300, chatsMs: 400, atOnce: 4, readers: 520, events: 10 }
