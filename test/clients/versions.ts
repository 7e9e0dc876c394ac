import * as ai5 from 'ai-5'
import { version as version5 } from 'ai-5/package.json'
import * as ai500 from 'ai-5-0-0'
import { version as version500 } from 'ai-5-0-0/package.json'
import * as ai6 from 'ai-6'
import { version as version6 } from 'ai-6/package.json'
import * as ai600 from 'ai-6-0-0'
import { version as version600 } from 'ai-6-0-0/package.json'
import * as ai7 from 'ai-7'
import { version as version7 } from 'ai-7/package.json'
import * as ai700 from 'ai-7-0-0'
import { version as version700 } from 'ai-7-0-0/package.json'
import type { Ai } from './headless-chat.ts'

/** The first of each major version takes no field that it does not know; the last is the one of today. */
export const versions = [
  { version: version500, ai: ai500 as unknown as Ai },
  { version: version5, ai: ai5 as Ai },
  { version: version600, ai: ai600 as unknown as Ai },
  { version: version6, ai: ai6 as unknown as Ai },
  { version: version700, ai: ai700 as unknown as Ai },
  { version: version7, ai: ai7 as unknown as Ai },
]
