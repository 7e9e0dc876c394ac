/** The events of a terminal's connection. */
export interface TerminalEvents {
  output: (bytes: Uint8Array) => void
  /** The server has dropped older output. */
  gap: () => void
  exit: (code: number) => void
  lost: (isLost: boolean) => void
}

export interface TerminalConnection {
  send: (bytes: Uint8Array<ArrayBuffer>) => void
  resize: (columns: number, rows: number) => void
  close: () => void
}

const RETRY_MS = 1000
/** The close codes that mean that the terminal or the session has ended. */
const FINAL = [1000, 1008]

/** Connects to a terminal. After a loss it connects again, from the byte after the last seen one. */
export function connectTerminal(sandboxId: string, pid: number, events: TerminalEvents): TerminalConnection {
  let offset = 0
  let size: { columns: number; rows: number } | undefined
  let socket: WebSocket | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  const tell = (message: object) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }
  const connect = () => {
    const url = new URL(`/v1/sandboxes/${sandboxId}/processes/${pid}/terminal?offset=${offset}`, location.href)
    url.protocol = url.protocol.replace('http', 'ws')
    socket = new WebSocket(url)
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => {
      events.lost(false)
      if (size) tell({ type: 'resize', ...size })
    }
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data !== 'string') {
        offset += data.byteLength
        return events.output(new Uint8Array(data))
      }
      const message: { type: string; offset?: number; exitCode?: number } = JSON.parse(data)
      if (message.type === 'gap') {
        offset = message.offset ?? offset
        events.gap()
      } else if (message.type === 'exit') events.exit(message.exitCode ?? 0)
    }
    socket.onclose = ({ code }) => {
      if (isClosed || FINAL.includes(code)) return
      events.lost(true)
      timer = setTimeout(connect, RETRY_MS)
    }
  }
  connect()
  return {
    send: bytes => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(bytes)
    },
    resize: (columns, rows) => {
      size = { columns, rows }
      tell({ type: 'resize', columns, rows })
    },
    close: () => {
      isClosed = true
      clearTimeout(timer)
      socket?.close()
    },
  }
}
