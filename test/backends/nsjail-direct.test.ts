import { openTestSandbox } from '../support/sandbox.ts'
import { describeDirect } from './direct.ts'

describeDirect('nsjail', openTestSandbox)
