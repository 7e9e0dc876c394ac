import { appendFileSync, readFileSync } from 'node:fs'
import { startPeer } from '../../src/cli/bench/start-peer.ts'
import { startGuard } from '../../src/cli/temporary/cleaner.ts'

/** A script that is not the program, but imports what starts the program anew. It notes in the file STARTED that it runs. */
const started = process.env.STARTED ?? ''
appendFileSync(started, 'once\n')
// Were it what it starts, it would start itself without an end.
if (readFileSync(started, 'utf8') !== 'once\n') process.exit(1)

const guard = await startGuard({ dataDirectory: `${started}.data`, settings: [] })
await guard.dismiss(true)
const peer = await startPeer()
console.log(await (await fetch(`${peer.url}/finished`)).text())
await peer[Symbol.asyncDispose]()
