import { Approvals } from './approvals.tsx'
import { Costs } from './costs.tsx'
import { Failures } from './failures.tsx'
import { Machine } from './machine.tsx'
import './overview.css'
import { Runs } from './runs.tsx'
import { Sandboxes } from './sandboxes.tsx'
import { Spent } from './spent.tsx'

/** What goes on, at one look. */
export default function Overview() {
  return (
    <section className="stack overview">
      <h1>Overview</h1>
      <div className="tiles">
        <Sandboxes />
        <Approvals />
        <Spent />
      </div>
      <Costs />
      <Failures />
      <Runs />
      <Machine />
    </section>
  )
}
