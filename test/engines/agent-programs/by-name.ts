import { describeProgram } from './describe-program.ts'
import { describeProof } from './proof.ts'

/** Run by scripts/agent-programs. */
const { THREADBOX_TEST_PROGRAM = '', THREADBOX_TEST_ROUNDS = '3' } = process.env
describeProgram(THREADBOX_TEST_PROGRAM)
describeProof(THREADBOX_TEST_PROGRAM, Number(THREADBOX_TEST_ROUNDS))
