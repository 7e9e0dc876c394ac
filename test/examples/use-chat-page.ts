// Opens the page of examples/use-chat in a DOM, sends two messages, and prints what it then shows: bun use-chat-page.ts ORIGIN
import { GlobalRegistrator } from '@happy-dom/global-registrator'

const [origin = ''] = process.argv.slice(2)
const html = await (await fetch(origin)).text()
const [, source = ''] = /<script[^>]*src="([^"]+)"/.exec(html) ?? []
const script = await (await fetch(new URL(source, origin))).text()

// The DOM is happy-dom's; streams and fetch stay those of the runtime, since the two do not mix.
const {
  fetch: ask,
  Response,
  Request,
  Headers,
  ReadableStream,
  WritableStream,
  TransformStream,
  AbortController,
} = globalThis
const { TextDecoderStream, AbortSignal } = globalThis
GlobalRegistrator.register({ url: origin })
Object.assign(globalThis, {
  Response,
  Request,
  Headers,
  ReadableStream,
  WritableStream,
  TransformStream,
  AbortController,
})
Object.assign(globalThis, { TextDecoderStream, AbortSignal })
globalThis.fetch = ((path: string, init?: RequestInit) => ask(new URL(path, origin), init)) as typeof fetch
document.body.innerHTML = '<div id="root"></div>'
const file = `${process.env.TMPDIR ?? '/tmp'}/use-chat-page-${process.pid}.mjs`
await Bun.write(file, script)
await import(file)
await Bun.file(file).delete()

/** Looks at each change of the page until it is so. */
function shown<Found>(find: () => Found | undefined | null | false): Promise<Found> {
  return new Promise(resolve => {
    const look = () => {
      const found = find()
      if (!found) return false
      observer.disconnect()
      resolve(found)
      return true
    }
    const observer = new MutationObserver(look)
    if (!look())
      observer.observe(document.body, { childList: true, subtree: true, characterData: true, attributes: true })
  })
}

const articles = () => [...document.querySelectorAll('article')].map(each => `${each.className}: ${each.textContent}`)

async function send(text: string, wanted: number): Promise<void> {
  const input = await shown(() => document.querySelector('input'))
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set
  set?.call(input, text)
  input.dispatchEvent(new Event('input', { bubbles: true }))
  await shown(() => document.querySelector<HTMLButtonElement>('button:not([disabled])'))
  document.querySelector('form')?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }))
  await shown(() => document.querySelector('[role=alert]') || articles().length === wanted)
  await shown(() => document.querySelector('[role=alert]') || document.querySelector('button:not([disabled])'))
}

await send('first words', 2)
await send('$ echo $((6 * 7)); echo more >> kept; wc -l < kept', 4)
console.log(
  JSON.stringify({ articles: articles(), alert: document.querySelector('[role=alert]')?.textContent ?? null }),
)
process.exit(0)
