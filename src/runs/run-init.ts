import type { Cause } from '../model/observation.ts'
import type { StoredMessage } from '../plugin-api/index.ts'
import type { StreamProfile } from '../stream/project.ts'
import type { RunEvent } from '../stream/run-event.ts'

/** What a run is, decided before it starts. */
export interface RunInit {
  threadId: string
  sandboxId: string
  teamId: string
  agentSlug: string
  /** The caller that asked for the run. */
  cause?: Cause
  /** The engine's name. It stands for the model until the model is known. */
  engine: string
  model?: string
  /** True: it needs no reader, and a later chat on its thread does not replace it. */
  background?: boolean
  /** Added to the thread in the transaction that makes the run. */
  messages?: readonly StoredMessage[]
  /** The reply that the run goes on with, as it is stored. Absent: it makes a new one. */
  reply?: StoredMessage
  /** What was answered since the reply waited: part of the stream from its start. */
  opening?: readonly RunEvent[]
  /** An earlier reply of the thread whose answers a new reply is given. */
  answers?: string
  /** The names of the tools that the client executes. */
  clientTools?: readonly string[]
  /** Default: contract. */
  profile?: StreamProfile
  /** Called in the transaction that stores an event's chunks. */
  record?: (event: RunEvent, run: { id: string; messageId: string }) => void
}
