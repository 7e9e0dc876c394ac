/** The fields before an array, and its name. */
interface Head {
  fields: object
  name: string
}

/**
 * A JSON answer with an array that may be long. Its pages are made one at a time, as the reader takes them, and other work
 * runs in between; of one page it is an answer like any other. Without `head` the answer is the array alone.
 */
export function inPieces(pages: Iterator<readonly unknown[], unknown>, head?: Head): object {
  const [first, second] = [pages.next(), pages.next()]
  const items = first.done ? [] : first.value
  if (second.done) return head ? { ...head.fields, [head.name]: items } : [...items]
  return streamed(continued([items, second.value], pages), head)
}

function* continued<Page>(begun: readonly Page[], pages: Iterator<Page, unknown>): Generator<Page> {
  yield* begun
  for (let next = pages.next(); !next.done; next = pages.next()) yield next.value
}

function streamed(pages: Iterator<readonly unknown[]>, head: Head | undefined): Response {
  const encoder = new TextEncoder()
  const opening = head ? `${JSON.stringify({ ...head.fields, [head.name]: [] }).slice(0, -2)}` : '['
  let isFirst = true
  const body = new ReadableStream<Uint8Array>(
    {
      start: controller => controller.enqueue(encoder.encode(opening)),
      async pull(controller) {
        await new Promise(setImmediate)
        const { done, value } = pages.next()
        if (done) {
          controller.enqueue(encoder.encode(head ? ']}' : ']'))
          controller.close()
          return
        }
        const items = value.map(item => JSON.stringify(item)).join(',')
        controller.enqueue(encoder.encode(isFirst ? items : `,${items}`))
        isFirst = false
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: { 'content-type': 'application/json;charset=utf-8' } })
}
