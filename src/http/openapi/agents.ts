import { Type } from '@sinclair/typebox'
import { answer, Bytes, nullable, type Operations, Timestamp } from './operation.ts'

const summary = {
  id: Type.String(),
  name: Type.String(),
  slug: Type.String(),
  runtime: Type.String(),
  deployedAt: nullable(Timestamp),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  activeVersion: nullable(Type.Integer()),
  activeDeploymentStatus: nullable(Type.String()),
}

const AgentSummary = Type.Object(summary, { title: 'AgentSummary' })

const Agent = Type.Object(
  {
    ...summary,
    model: nullable(Type.String()),
    tools: Type.Array(Type.Unknown()),
    totalDeployments: Type.Integer(),
  },
  { title: 'Agent' },
)

const Deployment = Type.Object(
  {
    id: Type.String(),
    version: Type.Integer(),
    madeBy: Type.Union([Type.Literal('deploy'), Type.Literal('edit'), Type.Literal('apply')], {
      description: '`apply`: the operator’s file.',
    }),
    status: Type.String(),
    isActive: Type.Boolean(),
    deployedAt: Timestamp,
    completedAt: Timestamp,
    error: Type.Null(),
    metadata: Type.Object({ model: nullable(Type.String()), tools: Type.Array(Type.Unknown()) }),
  },
  { title: 'Deployment' },
)

const AgentDefinition = Type.Object(
  {
    slug: Type.String(),
    version: nullable(Type.Integer()),
    revision: Type.String({ description: 'Stands for what the agent is now. A change names it.' }),
    definition: Type.Object(
      {
        slug: Type.String(),
        name: Type.String(),
        engine: Type.String(),
        model: Type.Optional(Type.String()),
        systemPrompt: Type.Optional(Type.String()),
        options: Type.Object({}, { additionalProperties: true }),
        sandbox: Type.Object({}, { additionalProperties: true }),
        secrets: Type.Optional(Type.Array(Type.Object({}, { additionalProperties: true }))),
      },
      { description: 'As an agent file has it, with null in the place of each secret.' },
    ),
    variables: Type.Array(Type.String(), { description: 'Names of the variables of new sandboxes.' }),
  },
  { title: 'AgentDefinition' },
)

const VariableNames = Type.Object({ keys: Type.Array(Type.String()) }, { title: 'VariableNames' })

const Rollback = Type.Object(
  { slug: Type.String(), version: Type.Integer(), deploymentId: Type.String(), message: Type.String() },
  { title: 'Rollback' },
)

const DeletedAgent = Type.Object(
  { success: Type.Boolean(), slug: Type.String(), message: Type.String() },
  { title: 'DeletedAgent' },
)

const Deploy = Type.Object({
  slug: Type.String(),
  bundle: Bytes,
  templateArchive: Type.Optional(Bytes),
  metadata: Type.Optional(Type.String({ description: 'JSON' })),
  sandboxConfig: Type.Optional(Type.String({ description: 'JSON' })),
  mcpConfig: Type.Optional(Type.String({ description: 'JSON' })),
  engine: Type.Optional(Type.String()),
})

const DeployEvents = Type.String({ description: 'Lines of JSON: `status` for each step, then `result` or `error`.' })

const LogPage = Type.Object(
  {
    sandboxes: Type.Array(Type.Object({ id: Type.String() }, { additionalProperties: true })),
    nextCursor: Type.Optional(Type.String()),
    logs: Type.Array(Type.Object({}, { additionalProperties: true })),
  },
  { title: 'AgentLogs' },
)

const Session = Type.Object(
  {
    sandbox: Type.Object({ id: Type.String() }, { additionalProperties: true }),
    thread: Type.Optional(Type.Object({ id: Type.String() }, { additionalProperties: true })),
  },
  { title: 'AgentSession' },
)

export const agentOperations: Operations = {
  'GET /v1/agents': {
    id: 'listAgents',
    summary: 'Lists agents',
    tag: 'Agents',
    answers: { 200: answer(Type.Object({ agents: Type.Array(AgentSummary) }, { title: 'AgentList' })) },
  },
  'GET /v1/agents/:slug': {
    id: 'getAgent',
    summary: 'Gives an agent',
    tag: 'Agents',
    answers: { 200: answer(Agent) },
  },
  'DELETE /v1/agents/:slug': {
    id: 'deleteAgent',
    summary: 'Deletes an agent. Its sandboxes stay',
    tag: 'Agents',
    answers: { 200: answer(DeletedAgent) },
  },
  'POST /v1/agents/deploy': {
    id: 'deployAgent',
    summary: 'Makes a version of an agent from a bundle',
    tag: 'Agents',
    body: { content: { 'multipart/form-data': Deploy } },
    answers: { 200: { description: 'What is done.', content: { 'application/x-ndjson': DeployEvents } } },
    errors: ['sandbox_unavailable'],
  },
  'GET /v1/agents/:slug/definition': {
    id: 'getAgentDefinition',
    summary: 'Gives what an agent is, or was at one of its versions',
    tag: 'Agents',
    answers: { 200: answer(AgentDefinition) },
    errors: ['not_found', 'sandbox_unavailable'],
  },
  'PUT /v1/agents/:slug/definition': {
    id: 'editAgent',
    summary: 'Makes a version of an agent from a whole definition',
    description: 'Nothing is made when that is what the agent is. `error.faults` has each field that is wrong.',
    tag: 'Agents',
    answers: { 200: answer(AgentDefinition) },
    errors: ['conflict', 'sandbox_unavailable'],
  },
  'GET /v1/agents/:slug/deployments': {
    id: 'listDeployments',
    summary: 'Lists the versions of an agent, newest first',
    tag: 'Agents',
    answers: { 200: answer(Type.Object({ deployments: Type.Array(Deployment) }, { title: 'DeploymentList' })) },
  },
  'POST /v1/agents/:slug/rollback': {
    id: 'rollBackAgent',
    summary: 'Makes an agent what one of its versions was',
    tag: 'Agents',
    answers: { 200: answer(Rollback) },
    errors: ['not_found', 'conflict', 'sandbox_unavailable'],
  },
  'GET /v1/agents/:slug/env': {
    id: 'listVariables',
    summary: "Lists the names of an agent's variables",
    tag: 'Agents',
    answers: { 200: answer(VariableNames) },
  },
  'PUT /v1/agents/:slug/env': {
    id: 'setVariable',
    summary: 'Sets a variable of an agent',
    tag: 'Agents',
    answers: { 200: answer(VariableNames) },
    errors: ['conflict'],
  },
  'DELETE /v1/agents/:slug/env': {
    id: 'removeVariable',
    summary: 'Takes a variable of an agent away',
    tag: 'Agents',
    answers: { 200: answer(VariableNames) },
  },
  'GET /v1/agents/:slug/logs': {
    id: 'listAgentSessions',
    summary: "Lists an agent's log and its sandboxes",
    tag: 'Agents',
    answers: { 200: answer(LogPage) },
  },
  'GET /v1/agents/:slug/logs/:sandboxId': {
    id: 'getAgentSession',
    summary: 'Gives one sandbox of an agent with its threads',
    tag: 'Agents',
    answers: { 200: answer(Session) },
    errors: ['thread_not_found'],
  },
}
