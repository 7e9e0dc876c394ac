/** How long Chromium takes to draw the console's first view, from the end of the server's answer. */
import { chromium } from 'playwright-core'
import { headers, inDirectory, serve } from './server.ts'
import { atMost, line, report } from './table.ts'

const OPENINGS = 10

const timesOf = `new Promise(resolve => {
  const [{ responseEnd }] = performance.getEntriesByType('navigation')
  new PerformanceObserver(list => {
    const found = list.getEntriesByName('first-contentful-paint')[0]
    if (found) resolve(found.startTime - responseEnd)
  }).observe({ type: 'paint', buffered: true })
})`

const firstView = line('first view of the console, empty cache', { goal: atMost(300, 'ms') })

await inDirectory(async directory => {
  const { url, stop } = await serve(directory)
  // Without its own sandbox, which root cannot use: the page is ours.
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', chromiumSandbox: false })
  for (let opening = 0; opening < OPENINGS; opening++) {
    const context = await browser.newContext({ baseURL: url })
    const data = { key: headers.authorization.replace('Bearer ', '') }
    const signedIn = await context.request.post('/v1/session', { data, headers: { origin: url } })
    if (!signedIn.ok()) throw new Error(`no session: ${signedIn.status()}`)
    const page = await context.newPage()
    await page.goto('/')
    firstView.rounds.push([await page.evaluate<number>(timesOf)])
    await context.close()
  }
  await browser.close()
  await stop()
})
report([firstView])
