// A machine is lost at a random moment while chats run; all that is left is the replica that Litestream wrote, and the key file.
// bun scripts/proofs/litestream.ts [ROUNDS=20] (builds first: scripts/build). Says how many seconds before the loss were lost.
import { loseMachine } from '../../test/litestream/lose-machine.ts'

const rounds = Number(process.argv[2] ?? 20)
const lost: number[] = []
for (let round = 1; round <= rounds; round++) {
  const { lostMs, chats, kept, generations } = await loseMachine(3000 + Math.random() * 5000)
  lost.push(lostMs)
  console.log(
    `${round}: ${kept} of ${chats} chats are there; the last ${(lostMs / 1000).toFixed(2)} s were lost; ${generations} generations`,
  )
}
const sorted = lost.sort((a, b) => a - b)
console.log(
  `median ${((sorted[Math.floor(rounds / 2)] ?? 0) / 1000).toFixed(2)} s, most ${((sorted.at(-1) ?? 0) / 1000).toFixed(2)} s`,
)
