import { describeProgram } from './describe-program.ts'
import { describeProof } from './proof.ts'

describeProgram('codex')
describeProof('codex', 2)
