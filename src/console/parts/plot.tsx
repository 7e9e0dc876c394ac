import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

export interface Plot {
  title: string
  /** The times in seconds since 1970, rising. */
  times: readonly number[]
  /** Each series has a value, or null, for every time. */
  series: readonly { name: string; values: readonly (number | null)[] }[]
  format?: (value: number) => string
  /** Columns show sums of a period, lines show measurements. */
  kind?: 'lines' | 'columns'
  /** The scale goes from zero to at least this value, so that small changes look small. */
  leastTop?: number
}

const HEIGHT = 180
const FEWEST_PIXELS = 64

/** The page's custom properties with the colours of the series, in order. */
const colours = ['--accent', '--good', '--warn', '--bad', '--text-soft']

/** Draws with the page's colours and width, and again when either changes. */
export default function PlotCanvas(plotted: Plot) {
  const { title, times, series, format = String, kind = 'lines', leastTop } = plotted
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = box.current
    if (!element) return
    let plot: UPlot | undefined
    const draw = () => {
      plot?.destroy()
      const style = getComputedStyle(element)
      const colour = (name: string) => style.getPropertyValue(name).trim()
      const axis = {
        stroke: colour('--text-soft'),
        grid: { stroke: colour('--line'), width: 1 },
        ticks: { show: false },
      }
      plot = new UPlot(
        {
          width: element.clientWidth,
          height: HEIGHT,
          scales: { x: { time: true }, ...(leastTop && { y: { range: upTo(leastTop) } }) },
          axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(each => format(each)) }],
          series: [
            {},
            ...series.map(({ name }, index) => {
              const stroke = colour(colours[index % colours.length] ?? '--accent')
              return {
                label: name,
                stroke,
                width: 1.5,
                points: { show: false },
                value: (_: UPlot, value: number | null) => (value === null ? '–' : format(value)),
                ...(kind === 'columns' && columns(stroke)),
              }
            }),
          ],
          legend: { show: series.length > 1 },
        },
        [[...times], ...series.map(({ values }) => [...values])] as UPlot.AlignedData,
        element,
      )
    }
    const resize = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: HEIGHT }))
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    draw()
    resize.observe(element)
    scheme.addEventListener('change', draw)
    return () => {
      resize.disconnect()
      scheme.removeEventListener('change', draw)
      plot?.destroy()
    }
  }, [times, series, format, kind, leastTop])
  return <div ref={box} className="plot" role="img" aria-label={`${title}, as a plot`} />
}

const upTo =
  (leastTop: number) =>
  (_: UPlot, _min: number | null, max: number | null): [number, number] => [0, Math.max(leastTop, (max ?? 0) * 1.1)]

const columns = (stroke: string) => {
  const paths = UPlot.paths.bars?.({ size: [0.7, FEWEST_PIXELS] })
  return { fill: `${stroke}99`, ...(paths && { paths }) }
}
