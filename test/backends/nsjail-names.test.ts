import { openTestSandbox } from '../support/sandbox.ts'
import { describeNames } from './names.ts'

describeNames('nsjail', openTestSandbox)
