import { Type } from '@sinclair/typebox'
import { answer, EVENT_STREAM, Events, noContent, type Operations } from './operation.ts'

const Message = Type.Object(
  { jsonrpc: Type.Literal('2.0') },
  { additionalProperties: true, title: 'McpMessage', description: 'A message of JSON-RPC 2.0.' },
)
const Messages = Type.Union([Message, Type.Array(Message)])

const Refusal = Type.Object({
  error: Type.Object({ code: Type.String(), message: Type.String() }),
  message: Type.String(),
})

export const mcpOperations: Operations = {
  'POST /v1/mcp': {
    id: 'mcp',
    summary: 'Speaks the Model Context Protocol',
    description:
      'Its transport is "streamable HTTP". Each call of a tool has the scopes, limits and rows of the audit log of the requests of this API that it stands for.',
    tag: 'MCP',
    body: { content: { 'application/json': Messages } },
    answers: {
      200: {
        description: 'The answer, or with `Accept: text/event-stream` news of a long call and then its answer.',
        content: { 'application/json': Messages, [EVENT_STREAM]: Events },
      },
      202: { description: 'What came wants no answer.' },
      400: answer(Type.Union([Message, Refusal]), 'An error of JSON-RPC, or of this API.'),
      404: answer(Message, 'There is no such method.'),
    },
    errors: ['payload_too_large', 'server_busy'],
  },
  'DELETE /v1/mcp': {
    id: 'endMcpSession',
    summary: 'Ends the calls of a session of the Model Context Protocol',
    tag: 'MCP',
    answers: { 204: noContent },
  },
}
