export { playTurn, type TurnInit, type TurnResult, user } from '../../src/contract/turn.ts'
