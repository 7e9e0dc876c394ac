/** What a script of bash connects to. */
export interface Route {
  /** The server's address and port. */
  origin: URL
  /** The host and port of a proxy through which to tunnel. */
  tunnel?: string
}

export interface Downloads {
  downloads: number
  /** The size of each download. */
  bytes: number
}

/** Writes a script that downloads with bash and cat only, which every sandbox has. */
export function downloadScript(route: Route, { downloads, bytes }: Downloads): string {
  return `set -e
  get() {
    ${openScript(route)}
    ${requestScript(route, bytes)}
    read -r -u 3 _ status _ && [ "$status" = 200 ] || exit 1
    cat <&3 > /dev/null
  }
  jobs=()
  for i in {1..${downloads}}; do (get) & jobs+=($!); done
  for job in "\${jobs[@]}"; do wait "$job"; done`
}

/**
 * Writes a script that prints how many µs each of so many connections takes to its first byte, one after the other. The server
 * sends it without a request: bash writes each line of a request by itself, which would wait for delayed acknowledgements.
 */
export function connectScript(route: Route, count: number): string {
  return `set -e
  LC_ALL=C
  for i in {1..${count}}; do
    from=\${EPOCHREALTIME/./}
    ${openScript(route)}
    read -r -n 1 -u 3 _
    to=\${EPOCHREALTIME/./}
    exec 3>&-
    echo $((to - from))
  done`
}

/** Connects at descriptor 3. */
function openScript({ origin: { hostname, port, host }, tunnel }: Route): string {
  const [to, toPort] = tunnel === undefined ? [hostname, port] : tunnel.split(':')
  const connect =
    tunnel === undefined
      ? ''
      : `printf 'CONNECT ${host} HTTP/1.1\\r\\nHost: ${host}\\r\\n\\r\\n' >&3
    read -r -u 3 _ status _ && [ "$status" = 200 ] || exit 1
    while read -r -u 3 line && [ "$line" != $'\\r' ]; do :; done`
  return `exec 3<>/dev/tcp/${to}/${toPort}
    ${connect}`
}

const requestScript = ({ origin: { host } }: Route, bytes: number): string =>
  `printf 'GET /stream?count=${bytes} HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n' >&3`
