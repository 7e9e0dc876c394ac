/**
 * A JSON answer with an array that may be long. Its pages are made one at a time, as the reader takes them, and other work
 * runs in between. `head` has the fields before the array `name`; without `head` the answer is the array alone.
 */
export function inPieces(pages: Iterator<readonly unknown[]>, head?: { fields: object; name: string }): Response {
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
