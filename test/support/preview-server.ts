import type { TestApp } from './app.ts'

/** A server in a sandbox that does what the path says, down to the byte. */
const program = `
import base64, hashlib, os, socket, sys, threading, time, urllib.parse
def head_of(s):
  data = b''
  while b'\\r\\n\\r\\n' not in data:
    piece = s.recv(65536)
    if not piece: return None, b''
    data += piece
  head, _, rest = data.partition(b'\\r\\n\\r\\n')
  return head.decode('latin1'), rest
def body_of(s, head, rest):
  f = s.makefile('rb')
  class Joined:
    def read(self, n):
      nonlocal rest
      got, rest = rest[:n], rest[n:]
      return got or f.read(n)
    def line(self):
      out = b''
      while not out.endswith(b'\\r\\n'): out += self.read(1)
      return out
  j = Joined()
  fields = dict((n.lower(), v.strip()) for n, _, v in (l.partition(':') for l in head.split('\\r\\n')[1:]))
  if fields.get('transfer-encoding') == 'chunked':
    while True:
      left = int(j.line(), 16)
      if left == 0: j.line(); return
      while left: piece = j.read(min(left, 65536)); left -= len(piece); yield piece
      j.line()
  left = int(fields.get('content-length', 0))
  while left: piece = j.read(min(left, 65536)); left -= len(piece); yield piece
def say(s, body, fields=''):
  body = body if isinstance(body, bytes) else body.encode()
  s.sendall(f'HTTP/1.1 200 OK\\r\\ncontent-type: text/plain\\r\\n{fields}content-length: {len(body)}\\r\\n\\r\\n'.encode() + body)
steps = threading.Semaphore(0)
def serve(s):
  head, rest = head_of(s)
  if head is None: return
  target = head.split(' ')[1]
  path, _, query = target.partition('?')
  if path == '/raw':
    s.sendall(base64.b64decode(urllib.parse.unquote(query)))
  elif path == '/raw-open':
    s.sendall(base64.b64decode(urllib.parse.unquote(query))); time.sleep(600)
  elif path == '/hash':
    digest, size = hashlib.sha256(), 0
    for piece in body_of(s, head, rest): digest.update(piece); size += len(piece)
    say(s, f'{size} {digest.hexdigest()}')
  elif path == '/first-part':
    piece = next(body_of(s, head, rest)); open('/tmp/first-part', 'wb').write(piece); say(s, b''.join(body_of(s, head, rest)) and 'whole')
  elif path == '/sse':
    s.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n')
    for n in range(3):
      event = f'data: {n}\\n\\n'.encode(); s.sendall(b'%x\\r\\n%s\\r\\n' % (len(event), event)); steps.acquire()
    s.sendall(b'0\\r\\n\\r\\n')
  elif path == '/next': steps.release(); say(s, 'released')
  elif path == '/flood':
    s.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n'); sent = 0
    try:
      while True: s.sendall(bytes(65536)); sent += 65536; open('/tmp/flood', 'w').write(str(sent))
    except OSError: open('/tmp/flood-ended', 'w').write('x')
  elif path == '/endless-headers':
    s.sendall(b'HTTP/1.1 200 OK\\r\\n')
    try:
      while True: s.sendall(b'x-more: ' + b'y' * 1000 + b'\\r\\n')
    except OSError: open('/tmp/headers-ended', 'w').write('x')
  elif path == '/endless-interim':
    try:
      while True: s.sendall(b'HTTP/1.1 103 Early Hints\\r\\n\\r\\n'); time.sleep(0.001)
    except OSError: open('/tmp/interim-ended', 'w').write('x')
  elif path == '/silent':
    open('/tmp/silent-begun', 'w').write('x'); s.recv(1); open('/tmp/silent-ended', 'w').write('x')
  elif path == '/deaf':
    open('/tmp/deaf-begun', 'w').write('x'); time.sleep(600)
  else:
    say(s, head + '\\n\\n' + b''.join(body_of(s, head, rest)).decode('latin1'))
  s.close()
listener = socket.socket(); listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1]))); listener.listen(100)
while True: threading.Thread(target=lambda s=listener.accept()[0]: serve(s), daemon=True).start()
`

/** Starts it. The requests go to /v1/sandboxes/ID/ports/PORT/…: \`/raw?BASE64\` is answered with these very bytes. */
export async function startPreviewServer(app: TestApp, sandboxId: string, port: number): Promise<void> {
  await startInside(app, sandboxId, port, 'server.py', program, 'python3 server.py')
}

/** Writes a program into the home directory, starts it with the port, and waits until it listens. */
export async function startInside(
  app: TestApp,
  sandboxId: string,
  port: number,
  name: string,
  source: string,
  command: string,
): Promise<void> {
  const files = [{ path: `/home/user/${name}`, content: source }]
  await app.ask('POST', `/v1/sandboxes/${sandboxId}/files`, { files })
  await app.shell(
    sandboxId,
    `${command} ${port} >/tmp/${name}.log 2>&1 &
     for i in $(seq 500); do (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null && exit; sleep 0.02; done; cat /tmp/${name}.log; exit 1`,
  )
}

/** The query of \`/raw\` for these bytes. */
export const raw = (...lines: string[]): string =>
  `/raw?${encodeURIComponent(Buffer.from(lines.join('\r\n'), 'latin1').toString('base64'))}`
