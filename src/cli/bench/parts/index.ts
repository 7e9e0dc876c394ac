import type { Part } from '../part.ts'
import type { PartName } from '../rows.ts'
import { base } from './base.ts'
import { burst } from './burst.ts'
import { bytes } from './bytes.ts'
import { chat } from './chat.ts'
import { connections } from './connections.ts'
import { create } from './create.ts'
import { docker } from './docker.ts'
import { exec } from './exec.ts'
import { memory } from './memory.ts'
import { output } from './output.ts'
import { proxy } from './proxy.ts'
import { start } from './start.ts'
import { stopped } from './stopped.ts'

/** The functions that measure the rows of each part. */
export const measures: Readonly<Record<PartName, Part>> = {
  exec,
  create,
  burst,
  base,
  docker,
  stopped,
  chat,
  bytes,
  output,
  proxy,
  connections,
  start,
  memory,
}
