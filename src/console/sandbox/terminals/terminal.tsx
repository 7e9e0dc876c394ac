import { FitAddon } from '@xterm/addon-fit'
import { Terminal as XTerm } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { useEffect, useRef, useState } from 'react'
import { boundRepeats } from './bound-repeats.ts'
import { connectTerminal } from './connect-terminal.ts'

export interface TerminalProps {
  sandboxId: string
  pid: number
  ended: () => unknown
}

/** Shows a terminal of the sandbox. After a loss the connection goes on where it was. */
export function Terminal({ sandboxId, pid, ended }: TerminalProps) {
  const box = useRef<HTMLDivElement>(null)
  const [isLost, setLost] = useState(false)
  const whenEnded = useRef(ended)
  whenEnded.current = ended
  useEffect(() => {
    const element = box.current
    if (!element) return
    const style = getComputedStyle(element)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const terminal = new XTerm({
      fontFamily: colour('--mono'),
      fontSize: 14,
      cursorBlink: true,
      screenReaderMode: true,
      // A link that a program prints stays text here. Without a handler, xterm would ask and then open it.
      linkHandler: { activate: () => {} },
      theme: { background: '#14161a', foreground: '#e9eaec', cursor: '#8fa8ff' },
    })
    boundRepeats(terminal)
    const fit = new FitAddon()
    terminal.loadAddon(fit)
    terminal.open(element)
    // The shell gets the Tab key. After Escape the page gets it, as in editors on pages.
    let wasEscape = false
    terminal.attachCustomKeyEventHandler(({ type, key }) => {
      if (type !== 'keydown' || key === 'Shift') return true
      const isLeaving = wasEscape && key === 'Tab'
      wasEscape = key === 'Escape'
      return !isLeaving
    })
    const connection = connectTerminal(sandboxId, pid, {
      output: bytes => terminal.write(bytes),
      gap: () => terminal.write('\r\n… what was printed before is gone …\r\n'),
      exit: code => {
        terminal.write(`\r\n[ended with ${code}]\r\n`)
        whenEnded.current()
      },
      lost: setLost,
    })
    const encoder = new TextEncoder()
    terminal.onData(text => connection.send(encoder.encode(text)))
    terminal.onBinary(text => connection.send(Uint8Array.from(text, each => each.charCodeAt(0))))
    terminal.onResize(size => connection.resize(size.cols, size.rows))
    const resize = new ResizeObserver(() => fit.fit())
    resize.observe(element)
    fit.fit()
    terminal.focus()
    return () => {
      resize.disconnect()
      connection.close()
      terminal.dispose()
    }
  }, [sandboxId, pid])
  return (
    <div className="stack">
      {isLost && (
        <p role="status" className="hint">
          The connection is lost; it is tried again…
        </p>
      )}
      <section ref={box} className="terminal-box" aria-label={`Terminal ${pid}`} aria-describedby="leave-terminal" />
      <p id="leave-terminal" className="hint">
        <kbd>Esc</kbd> and then <kbd>Tab</kbd> lead out of the terminal.
      </p>
    </div>
  )
}
