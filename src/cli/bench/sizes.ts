/** How much is measured. */
export interface Sizes {
  /** The most rounds of a part. */
  rounds: number
  execs: number
  idleTurns: number
  parallelExecs: number
  spacedCreates: number
  createsInRow: number
  deletes: number
  burst: number
  spares: number
  stopped: number
  readers: number
  events: number
  chunks: number
  fileMib: number
  outputMib: number
  downloadMib: number
  connects: number
  sandboxesOnDisk: number
  starts: number
  activeSandboxes: number
}

/** These sizes take one to two minutes; the rows' names refer to them. */
export const full: Sizes = {
  rounds: 3,
  execs: 60,
  idleTurns: 5,
  parallelExecs: 200,
  spacedCreates: 6,
  createsInRow: 50,
  deletes: 6,
  burst: 100,
  spares: 32,
  stopped: 4,
  readers: 1000,
  events: 40,
  chunks: 10_000,
  fileMib: 1024,
  outputMib: 512,
  downloadMib: 512,
  connects: 100,
  sandboxesOnDisk: 1000,
  starts: 6,
  activeSandboxes: 5,
}

/** These sizes take about 20 seconds. Bursts and bytes are smaller than the rows' names say. */
export const quick: Sizes = {
  rounds: 1,
  execs: 30,
  idleTurns: 2,
  parallelExecs: 100,
  spacedCreates: 3,
  createsInRow: 10,
  deletes: 2,
  burst: 20,
  spares: 8,
  stopped: 2,
  readers: 200,
  events: 20,
  chunks: 2000,
  fileMib: 64,
  outputMib: 32,
  downloadMib: 32,
  connects: 20,
  sandboxesOnDisk: 100,
  starts: 2,
  activeSandboxes: 2,
}
