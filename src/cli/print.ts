type Print = (text: string | Uint8Array) => Promise<void>

/** Writes that wait for the reader. They do not fail when the reader has left: the stream emits an error for that. */
export function printer(): { stdout: Print; stderr: Print } {
  const to =
    (stream: NodeJS.WriteStream): Print =>
    text =>
      new Promise(resolve => {
        stream.write(text, () => resolve())
      })
  return { stdout: to(process.stdout), stderr: to(process.stderr) }
}
