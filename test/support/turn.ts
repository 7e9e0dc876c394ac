export { playTurn, type TurnInit, type TurnResult, user } from '../../src/plugin-suite/turn.ts'
