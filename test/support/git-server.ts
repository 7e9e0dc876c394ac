import type { TestApp } from './app.ts'
import { until } from './until.ts'

/** A way into a sandbox. */
export interface Inside {
  write(path: string, content: string): Promise<unknown>
  run(command: string): Promise<{ exitCode: number }>
}

export const insideOf = (app: TestApp, sandboxId: string): Inside => ({
  write: (path, content) => app.ask('POST', `/v1/sandboxes/${sandboxId}/files`, { path, content }),
  run: command => app.exec(sandboxId, command),
})

/** git's own server of a repository over HTTP; what lies in /srv/git/private asks for a password. */
const server = `
import base64, http.server, subprocess, sys
token = sys.argv[1]
class Handler(http.server.BaseHTTPRequestHandler):
    def serve(self):
        path, _, query = self.path.partition('?')
        given = self.headers.get('authorization', '')
        user, _, password = base64.b64decode(given.removeprefix('Basic ')).decode().partition(':')
        if path.startswith('/private') and password != token:
            self.send_response(401)
            self.send_header('www-authenticate', 'Basic realm="git"')
            self.send_header('content-length', '0')
            return self.end_headers()
        body = self.rfile.read(int(self.headers.get('content-length') or 0))
        answer = subprocess.run(['git', 'http-backend'], input=body, stdout=subprocess.PIPE, env={
            'PATH': '/usr/bin', 'GIT_PROJECT_ROOT': '/srv/git', 'GIT_HTTP_EXPORT_ALL': '1', 'PATH_INFO': path,
            'QUERY_STRING': query, 'REQUEST_METHOD': self.command, 'REMOTE_USER': user, 'REMOTE_ADDR': '127.0.0.1',
            'CONTENT_TYPE': self.headers.get('content-type', ''), 'CONTENT_LENGTH': str(len(body)),
            'HTTP_CONTENT_ENCODING': self.headers.get('content-encoding', ''),
            'GIT_PROTOCOL': self.headers.get('git-protocol', '')}).stdout
        head, _, rest = answer.partition(b'\\r\\n\\r\\n')
        fields = [line.split(': ', 1) for line in head.decode().split('\\r\\n')]
        self.send_response(int(dict(fields).get('Status', '200').split()[0]))
        for name, value in fields:
            if name != 'Status': self.send_header(name, value)
        self.send_header('content-length', str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)
    do_GET = do_POST = serve
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8418), Handler).serve_forever()
`

const repositories = `set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main /tmp/work && cd /tmp/work
for n in 1 2 3; do echo $n > file && git add file && git commit -qm "commit $n"; done
git checkout -qb side && echo side > file && git commit -qam side && git checkout -q main
mkdir -p /srv/git/private
for name in public private/secret; do git clone -q --bare /tmp/work /srv/git/$name.git; done
git init -q --bare -b trunk /srv/git/empty.git
rm -rf /tmp/work`

export const gitUrl = 'http://localhost:8418'

/**
 * Serves /public.git, /empty.git and, to who has the token, /private/secret.git inside a sandbox. The first two
 * repositories have three commits on main and one more on side.
 */
export async function serveGit({ write, run }: Inside, token: string): Promise<void> {
  await write('/srv/git-server.py', server)
  const made = await run(repositories)
  if (made.exitCode !== 0) throw new Error(JSON.stringify(made))
  await run(`python3 /srv/git-server.py ${token} >/srv/git-server.log 2>&1 &`)
  await until(async () => (await run(`git ls-remote ${gitUrl}/public.git`)).exitCode === 0, 'git is served')
}
