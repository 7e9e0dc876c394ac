import { useEffect, useRef, useState } from 'react'

/** The page keeps this much output; the server keeps a MiB. */
const KEPT = 200_000

interface Piece {
  type: string
  data?: string
  exitCode?: number
  message?: string
}

/** Shows the output of a process, and follows it. */
export function LiveOutput({ sandboxId, pid }: { sandboxId: string; pid: number }) {
  const [text, setText] = useState('')
  const end = useRef<HTMLPreElement>(null)
  useEffect(() => {
    setText('')
    const source = new EventSource(`/v1/sandboxes/${sandboxId}/processes/${pid}/output?offset=0`)
    source.onmessage = ({ data }) => {
      if (data === '[DONE]') return source.close()
      const piece: Piece = JSON.parse(data)
      setText(before => (before + wordsOf(piece)).slice(-KEPT))
    }
    return () => source.close()
  }, [sandboxId, pid])
  // biome-ignore lint/correctness/useExhaustiveDependencies: it follows the end as the text grows
  useEffect(() => {
    end.current?.scrollTo({ top: end.current.scrollHeight })
  }, [text])
  return (
    <pre ref={end} className="live-output" role="log" aria-label={`Output of ${pid}`}>
      {text || 'Nothing yet.'}
    </pre>
  )
}

function wordsOf({ type, data, exitCode, message }: Piece): string {
  if (type === 'exit') return `\n[ended with ${exitCode}]\n`
  if (type === 'gap') return '… what was printed before is gone …\n'
  if (type === 'error') return `\n[${message}]\n`
  return data ?? ''
}
