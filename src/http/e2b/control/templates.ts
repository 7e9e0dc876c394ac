import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../../bounds.ts'
import { findTemplate, listTemplateAgents } from '../../../core/e2b/templates.ts'
import type { Runtime } from '../../../core/runtime.ts'
import { toStart } from '../../../core/sandboxes/environment-start.ts'
import type { Agent } from '../../../model/agent.ts'
import { getCaller } from '../../caller.ts'
import { describeSize } from './answers.ts'

const AliasParams = Type.Object({ alias: Type.String({ maxLength: bounds.id }) })

/** Routes that show templates, which are the agents of a team. They are made by this server's own commands. */
export const templateRoutes = (runtime: Runtime) =>
  new Elysia()
    .get('/templates', ({ request }) =>
      listTemplateAgents(runtime, getCaller(request)).map(agent => describeTemplate(runtime, agent)),
    )
    .get(
      '/templates/aliases/:alias',
      async ({ request, params: { alias } }) => {
        await findTemplate(runtime, getCaller(request), alias)
        return { templateID: alias, public: false }
      },
      { params: AliasParams },
    )

function describeTemplate({ config }: Runtime, agent: Agent) {
  const { slug, id } = agent
  return {
    templateID: slug,
    buildID: agent.deploymentId ?? id,
    buildStatus: 'ready',
    public: false,
    aliases: [slug],
    names: [slug],
    ...describeSize(toStart(config, agent).limits),
  }
}
