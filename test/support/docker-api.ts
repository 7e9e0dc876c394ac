/** What tests ask an engine directly, over its socket. */
export interface DockerApi {
  /** One request, and its whole answer. */
  ask(method: string, path: string, body?: RequestInit['body'], type?: string): Promise<any>
  /** All containers that it knows. */
  containers(): Promise<any[]>
  /** Makes an image of a root file system: a directory, or a tar file. */
  import(name: string, root: string, changes?: readonly string[]): Promise<void>
}

export function dockerApi(socket: string): DockerApi {
  const ask: DockerApi['ask'] = async (method, path, body, type = 'application/json') => {
    const response = await fetch(`http://docker${path}`, {
      unix: socket,
      method,
      ...(body !== undefined && { body, headers: { 'content-type': type } }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return /^[{[]/.test(text) ? JSON.parse(text.split('\r\n')[0]!) : text
  }
  return {
    ask,
    containers: () => ask('GET', '/containers/json?all=1'),
    async import(name, root, changes = []) {
      const archive = root.endsWith('.tar')
        ? Bun.file(root)
        : await new Response(Bun.spawn(['tar', '-C', root, '-c', '.'], { stdout: 'pipe' }).stdout).blob()
      const lines = changes.map(each => ['changes', each] as [string, string])
      const query = new URLSearchParams([['fromSrc', '-'], ['repo', name], ...lines])
      const { error } = await ask('POST', `/images/create?${query}`, archive, 'application/x-tar')
      if (error) throw new Error(error)
    },
  }
}
