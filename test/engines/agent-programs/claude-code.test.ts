import { describeProgram } from './describe-program.ts'
import { describeProof } from './proof.ts'

describeProgram('claude-code')
describeProof('claude-code', 2)
