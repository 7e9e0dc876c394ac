import ssh2 from 'ssh2'

/** A server of SSH on 127.0.0.1 that lets in who has one of the keys, given as public blobs, and says what it was told to run. */
export async function startSshServer(
  hostKey: string,
  authorized: readonly Buffer[],
): Promise<{ port: number; close(): void }> {
  const server = new ssh2.Server({ hostKeys: [hostKey] }, client => {
    client.on('error', () => {})
    client.on('authentication', context => {
      if (context.method !== 'publickey') return context.reject(['publickey'])
      const { key, signature, blob, hashAlgo } = context
      const isKnown = authorized.some(each => each.equals(key.data))
      const parsed = ssh2.utils.parseKey(key.data)
      if (!isKnown || parsed instanceof Error) return context.reject()
      if (signature && blob && !parsed.verify(blob, signature, hashAlgo)) return context.reject()
      context.accept()
    })
    client.on('session', accept =>
      accept().on('exec', (take, _reject, { command }) => {
        const stream = take()
        stream.write(`ran ${command}`)
        stream.exit(0)
        stream.end()
      }),
    )
  })
  const port = await new Promise<number>(resolve =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
  )
  return { port, close: () => void server.close() }
}
