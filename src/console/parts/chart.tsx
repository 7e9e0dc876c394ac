import { lazy, Suspense } from 'react'
import type { Plot } from './plot.tsx'
import { Scroll } from './scroll.tsx'

/** The plot's library is loaded when the first plot is shown. */
const LazyPlot = lazy(() => import('./plot.tsx'))

/** A plot, with a table of the same figures behind it for people who cannot see it or want the figures. */
export function Chart(plot: Plot) {
  const { title, times, series, format = String } = plot
  return (
    <figure className="chart stack">
      <figcaption>{title}</figcaption>
      <Suspense fallback={<div className="plot" />}>
        <LazyPlot {...plot} />
      </Suspense>
      <details>
        <summary>Show as a table</summary>
        <Scroll label="The figures, as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col" className="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time}>
                  <th scope="row">{new Date(time * 1000).toLocaleString('en')}</th>
                  {series.map(({ name, values }) => (
                    <td key={name} className="number">
                      {values[index] == null ? '–' : format(values[index])}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </details>
    </figure>
  )
}
