import { type TSchema, Type } from '@sinclair/typebox'
import type { ErrorCode } from '../../errors.ts'

/** What the API's description says of one route, beside the parameters and the body that the route itself declares. */
export interface Operation {
  /** The name of the function in generated clients. */
  id: string
  summary: string
  tag:
    | 'Sandboxes'
    | 'Schedules'
    | 'Secrets'
    | 'Commands'
    | 'Files'
    | 'Processes'
    | 'Threads'
    | 'Chat'
    | 'Approvals'
    | 'Previews'
    | 'Agents'
    | 'Account'
    | 'Webhooks'
    | 'Server'
    | 'Snapshots'
    | 'MCP'
  description?: string
  /** Successful answers by status. */
  answers: Readonly<Record<number, Answer>>
  /** Error codes beyond those that the path alone can cause. */
  errors?: readonly ErrorCode[]
  /** The body of a route that reads it by itself, and so declares none. */
  body?: { content: Readonly<Record<string, TSchema>>; isOptional?: true }
  /** Anyone may call it, without a key. */
  isPublic?: true
}

export interface Answer {
  description: string
  /** Schemas by content type. Without any, the answer has no body. */
  content?: Readonly<Record<string, TSchema>>
  headers?: Readonly<Record<string, string>>
}

/** Operations by `METHOD /path`, as the router has it. */
export type Operations = Readonly<Record<string, Operation>>

export const EVENT_STREAM = 'text/event-stream'

/** A JSON answer. A schema with a title becomes a named type of generated clients. */
export const answer = (schema: TSchema, description = 'The answer.'): Answer => ({
  description,
  content: { 'application/json': schema },
})

export const noContent: Answer = { description: 'Done. The answer has no body.' }

export const Timestamp = Type.String({ format: 'date-time' })

/** A value that may be null. */
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])

export const Bytes = Type.String({ format: 'binary' })

/** Lines `data: <json>`, the last one `data: [DONE]`. */
export const Events = Type.String({
  description: 'Server-sent events: lines `data: <json>`, the last one `data: [DONE]`.',
})
