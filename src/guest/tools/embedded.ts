import { bundledScript } from './script.macro.ts' with { type: 'macro' }

/** The tools' server as one script for Node 18 and later, or Bun. */
export const toolScript: string = bundledScript()
