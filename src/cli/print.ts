type Print = (text: string | Uint8Array) => Promise<void>

/** Writes that wait for who reads. One who has left ends nothing here: the stream's own error says it. */
export function printer(): { stdout: Print; stderr: Print } {
  const to =
    (stream: NodeJS.WriteStream): Print =>
    text =>
      new Promise(resolve => {
        stream.write(text, () => resolve())
      })
  return { stdout: to(process.stdout), stderr: to(process.stderr) }
}
