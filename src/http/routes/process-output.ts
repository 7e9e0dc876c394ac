import type { OutputEvent } from '../../core/sandboxes/processes.ts'
import { frameOf, idLine, writeEventBody } from '../event-body.ts'
import { createTextFrames, createTexts, type OutputText } from '../output-text.ts'
import type { BodyWriter } from '../written-body.ts'

/** Writes a process's output as server-sent events, at their reader's pace. Never rejects: an error is the last event. */
export const writeProcessOutput = (
  to: BodyWriter,
  encoding: 'text' | 'base64',
  events: AsyncGenerator<OutputEvent, void>,
): Promise<void> =>
  writeEventBody(to, 'The output could not be read further.', async () => {
    const write = eventWriter(to, encoding)
    for await (const event of events) {
      write.event(event)
      await to.room()
    }
    write.rest()
  })

function eventWriter(to: BodyWriter, encoding: 'text' | 'base64') {
  const texts = createTexts()
  const textFrame = createTextFrames()
  const writeText = ({ type, offset, text }: OutputText, id?: number) =>
    to.write(textFrame(`${idLine(id)}data: {"type":"${type}","offset":${offset},"data":"`, text))
  const rest = () => {
    for (const each of texts.rest()) writeText(each)
  }
  return {
    rest,
    event(event: OutputEvent) {
      if (event.type === 'gap') return to.write(frameOf(event, event.offset))
      if (event.type === 'exit') {
        rest()
        return to.write(frameOf(event))
      }
      const { type, offset, bytes } = event
      const end = offset + bytes.byteLength
      if (encoding === 'base64') return to.write(frameOf({ type, offset, data: bytes.toBase64() }, end))
      const whole = texts.add(type, offset, bytes)
      if (whole) writeText(whole, texts.resumeAt(end))
    },
  }
}
