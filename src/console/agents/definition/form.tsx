import { isolations } from '../../api/create-sandbox.ts'
import { ChoiceField, type Editing, isWithin, LineField, LinesField, NumberField, TextField } from './fields.tsx'

/** The fields that the form has. All others are in the JSON alone. */
const formPaths = [
  ...['name', 'engine', 'model', 'systemPrompt'],
  ...['maxTurns', 'maxBudgetUsd', 'maxSandboxBudgetUsd', 'onBudget', 'permissionMode', 'approvals'].map(inOptions),
  ...['disallowedTools', 'allow', 'ask', 'deny', 'networkAllowOut', 'networkDenyOut'].map(inOptions),
  ...['cwd', 'setup', 'timeoutMs', 'isolation'].map(name => `sandbox.${name}`),
  ...['memoryMb', 'cpus', 'processes', 'diskMb'].map(name => `sandbox.limits.${name}`),
]

function inOptions(name: string): string {
  return `options.${name}`
}

/** What is wrong in places that the form does not show. */
export const faultsElsewhere = ({ faults }: Pick<Editing, 'faults'>) =>
  faults.filter(fault => !formPaths.some(path => isWithin(fault, path)))

/** An agent's definition as fields. */
export function DefinitionForm({ editing, isDisabled }: { editing: Editing; isDisabled: boolean }) {
  const at = (path: string, label: string, hint?: string) => ({ editing, path, label, ...(hint && { hint }) })
  return (
    <div className="stack">
      <fieldset className="card stack" disabled={isDisabled}>
        <legend>Who it is</legend>
        <div className="fields">
          <LineField {...at('name', 'Name')} isNeeded />
          <LineField {...at('model', 'Model', 'As provider/model; empty, the server’s.')} />
          <LineField {...at('engine', 'Engine')} isNeeded />
        </div>
        <TextField {...at('systemPrompt', 'System prompt', 'Is added to the engine’s own.')} rows={12} />
      </fieldset>
      <fieldset className="card stack" disabled={isDisabled}>
        <legend>What it may do</legend>
        <div className="fields">
          <NumberField {...at('options.maxTurns', 'Model calls in a chat')} />
          <NumberField {...at('options.maxBudgetUsd', 'Dollars for a chat')} />
          <NumberField {...at('options.maxSandboxBudgetUsd', 'Dollars for a sandbox')} />
          <ChoiceField
            {...at('options.onBudget', 'At the end of its budget')}
            choices={['ask', 'fail']}
            unset="fail (default)"
          />
          <ChoiceField
            {...at('options.permissionMode', 'Permission mode')}
            choices={['default', 'acceptEdits', 'bypassPermissions', 'plan']}
            unset="not set"
          />
          <ChoiceField {...at('options.approvals', 'Approvals')} choices={['on', 'off']} unset="off (default)" />
        </div>
        <LinesField {...at('options.disallowedTools', 'Tools taken away', 'A name on each line, as WebFetch.')} />
        <LinesField {...at('options.allow', 'Calls allowed', 'A rule on each line, as Bash(npm test).')} />
        <LinesField {...at('options.ask', 'Calls that ask')} />
        <LinesField {...at('options.deny', 'Calls denied')} />
        <LinesField
          {...at('options.networkAllowOut', 'Hosts it may reach', 'A rule on each line, as *.example.com:443.')}
        />
        <LinesField {...at('options.networkDenyOut', 'Hosts it may not reach')} />
      </fieldset>
      <fieldset className="card stack" disabled={isDisabled}>
        <legend>Its new sandboxes</legend>
        <LinesField {...at('sandbox.setup', 'Set-up commands', 'A command on each line.')} isKept />
        <div className="fields">
          <LineField {...at('sandbox.cwd', 'Working directory')} />
          <NumberField {...at('sandbox.timeoutMs', 'Time to live without use, ms')} />
          <ChoiceField
            {...at('sandbox.isolation', 'Isolation, at least')}
            choices={isolations}
            unset="the server’s own"
          />
          <NumberField {...at('sandbox.limits.memoryMb', 'Memory, MB')} />
          <NumberField {...at('sandbox.limits.cpus', 'CPU cores')} />
          <NumberField {...at('sandbox.limits.processes', 'Processes')} />
          <NumberField {...at('sandbox.limits.diskMb', 'Disk, MB')} />
        </div>
      </fieldset>
    </div>
  )
}
