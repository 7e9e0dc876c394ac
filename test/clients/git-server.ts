/** Serves every repository below a directory by HTTP, on loopback, to who has the password. Arguments: directory, port, password. */
export const gitServer = `
import base64, http.server, os, subprocess, sys

root, port, password = sys.argv[1], int(sys.argv[2]), sys.argv[3]
wanted = 'Basic ' + base64.b64encode(b'x-access-token:' + password.encode()).decode()

class Git(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get('Authorization') != wanted:
            self.send_response(401)
            self.send_header('WWW-Authenticate', 'Basic realm="git"')
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        path, _, query = self.path.partition('?')
        length = self.headers.get('Content-Length', '0')
        environment = dict(
            os.environ, GIT_PROJECT_ROOT=root, GIT_HTTP_EXPORT_ALL='1', REMOTE_USER='x-access-token', PATH_INFO=path,
            QUERY_STRING=query, REQUEST_METHOD=self.command, CONTENT_LENGTH=length,
            CONTENT_TYPE=self.headers.get('Content-Type', ''), GIT_PROTOCOL=self.headers.get('Git-Protocol', ''),
            HTTP_CONTENT_ENCODING=self.headers.get('Content-Encoding', ''))
        answer = subprocess.run(
            ['git', 'http-backend'], input=self.rfile.read(int(length)), env=environment, stdout=subprocess.PIPE).stdout
        head, _, body = answer.partition(b'\\r\\n\\r\\n')
        fields = [line.split(': ', 1) for line in head.decode().split('\\r\\n')]
        self.send_response(next((int(value.split()[0]) for name, value in fields if name == 'Status'), 200))
        for name, value in fields:
            if name != 'Status':
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

http.server.HTTPServer(('127.0.0.1', port), Git).serve_forever()
`

/** Makes /srv/project.git with two commits, and serves it; ends when the server answers. */
export const serveProject = (port: number, password: string): string => `set -e
mkdir -p /srv && git init -q -b trunk /srv/work && cd /srv/work
git config user.email test@example.com && git config user.name test
for word in first second; do echo $word >note.txt && git add . && git commit -q -m $word; done
git clone -q --bare /srv/work /srv/project.git
python3 /srv/git.py /srv ${port} '${password}' >/srv/git.log 2>&1 &
until (: </dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.05; done`
