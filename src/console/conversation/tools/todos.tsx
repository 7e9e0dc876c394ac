import { listField, type ToolView, textField } from './view.ts'

const signs = new Map([
  ['completed', '✓'],
  ['in_progress', '▸'],
])

/** The agent's list of tasks. */
export const Todos: ToolView = ({ input }) => (
  <ul className="todos plain">
    {listField(input, 'todos').map((todo, index) => {
      const status = textField(todo, 'status') ?? 'pending'
      return (
        // biome-ignore lint/suspicious/noArrayIndexKey: a task has no id
        <li key={index} className={status}>
          <span aria-hidden="true">{signs.get(status) ?? '○'}</span>
          <span className="visually-hidden">{status.replace('_', ' ')}: </span>
          {textField(todo, 'content') ?? ''}
        </li>
      )
    })}
  </ul>
)
