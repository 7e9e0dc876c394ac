import { createWatchdog } from '../../src/cli/watchdog.ts'
import { watchOver } from '../../src/plugin-loader/watchdog.ts'
import { exhaustDescriptors } from '../support/descriptor-limit.ts'

/** Watches with so many descriptors free. */
const restore = exhaustDescriptors(Number(process.argv[2]))
const plugins = watchOver(5000, [])
console.log(await plugins.within('a', async () => 'loaded'))
console.log(plugins.during('a', () => 'made'))
plugins.close()
const loop = createWatchdog(() => {})
loop.start(60_000, 'text')
// A thread that could not start would end the process by now.
await Bun.sleep(300)
console.log(loop.delayMs().p50 >= 0 ? 'watched' : '')
loop.close()
restore()
process.exit(0)
