import { useQuery } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'
import { Scroll } from '../parts/scroll.tsx'

/** Shows the server's settings. Flags, variables or the file change them, with a restart. */
export function ServerSettings() {
  const server = useQuery({ queryKey: ['server', 'settings'], queryFn: () => take(api.GET('/v1/server')) })
  if (server.error) return <Problem error={server.error} />
  return (
    <div className="card stack">
      <p className="hint">
        Set by flags, by variables THREADBOX_NAME, or in the file of --config; a restart applies them.
      </p>
      <Scroll label="Settings">
        <table>
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
              <th scope="col" className="wide">
                From
              </th>
            </tr>
          </thead>
          <tbody>
            {server.data?.settings.map(({ name, value, source, help }) => (
              <tr key={name}>
                <th scope="row">
                  <code>{name}</code>
                  <p className="hint">{help}</p>
                </th>
                <td className="setting">
                  {value === undefined ? <span className="hint">not set</span> : <code>{value}</code>}
                  <span className="hint small-only">{source}</span>
                </td>
                <td className="wide">{source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </div>
  )
}
