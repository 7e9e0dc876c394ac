import { echo } from '../../plugins/echo/index.ts'
import { describeEngine, type Scene } from './contract.ts'
import { engineOf } from './engine-of.ts'

/** echo has no model: nothing to wait for, and nothing that could call badly or be remembered. */
function promptOf(scene: Scene): string | undefined {
  switch (scene.does) {
    case 'say':
      return scene.text
    case 'run':
      return `$ ${scene.command}`
    case 'say slowly':
      return '/slow 200'
    case 'fail at once':
      return '/fail'
    case 'fail after a word':
      return 'word\n/fail'
    case 'heed':
      return `$ ${scene.command}`
    case 'heed at its end':
      return '/slow 20'
    default:
      return undefined
  }
}

describeEngine('echo', () => ({
  engine: engineOf(echo),
  stage: promptOf,
  openCalls: () => 0,
  close: async () => {},
}))
