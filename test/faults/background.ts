import type { Server } from '../support/server.ts'

const port = 8071

/** Leaves a web server behind in the sandbox that counts its visitors. */
export async function leaveCounter(server: Server, sandboxId: string): Promise<void> {
  const source = `
import http.server
class Counter(http.server.BaseHTTPRequestHandler):
    visitors = 0
    def do_GET(self):
        Counter.visitors += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(Counter.visitors).encode())
http.server.HTTPServer(('127.0.0.1', ${port}), Counter).serve_forever()`
  await server.exec(
    sandboxId,
    `cat >/srv.py <<'END'\n${source}\nEND\npython3 /srv.py >/dev/null 2>&1 &
until (: </dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.02; done`,
  )
}

/** Goes there by a command of its own. The number of visitors so far: a counter that was started again begins with 1. */
export async function visitCounter(server: Server, sandboxId: string): Promise<number> {
  const { stdout } = await server.exec(
    sandboxId,
    `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; tail -n 1 <&3`,
  )
  return Number(stdout)
}
