import { Webhook } from 'standardwebhooks'

export interface Received {
  id: string
  at: number
  body: { type: string; timestamp: string; data: Record<string, unknown> }
}

/** A program that receives events. It answers as `answer` says, and checks each signature by the standard's own library. */
export class Receiver implements Disposable {
  readonly received: Received[] = []
  /** What was wrong with requests. */
  readonly faults: string[] = []
  secret = ''
  readonly #server: Bun.Server<undefined>

  constructor(answer: (count: number) => Response | Promise<Response> = () => new Response()) {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async request => {
        const text = await request.text()
        try {
          new Webhook(this.secret).verify(text, Object.fromEntries(request.headers))
        } catch (error) {
          this.faults.push(`${error}`)
        }
        const id = request.headers.get('webhook-id') ?? ''
        this.received.push({ id, at: performance.now(), body: JSON.parse(text) })
        return await answer(this.received.length)
      },
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/told`
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true)
  }
}
