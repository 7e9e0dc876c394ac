import { openDatabase } from '../../src/db/open.ts'
import { readBeside } from '../../src/db/read-beside.ts'
import { exhaustDescriptors } from '../support/descriptor-limit.ts'

/** Reads beside the event loop with so many descriptors free, then with enough. */
const [path = '', free] = process.argv.slice(2)
const db = openDatabase(path)
const read = () => readBeside(db, 'select 1 as one', {}).then(JSON.stringify, String)
const restore = exhaustDescriptors(Number(free))
console.log(await read())
restore()
console.log(await read())
process.exit(0)
