/**
 * `bun scripts/proofs/clients.ts [root|user|docker]…` (as root): runs clients of TCP in sandboxes of default settings, without the proxy's variables, and prints a table for
 * docs/network.md. PostgreSQL, Redis, sshd with a git repository, and an HTTP server run on an address of this machine, which names stand for by a hosts file
 * that servers alone see. Clients that are no part of Debian's base or of the image are tried on nsjail alone, on the machine's own programs. It wants
 * debootstrap, dockerd, and an address of this machine beside its loopback; registries are those of this machine's clients.
 */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { Dockerd } from '../../test/support/dockerd.ts'
import { mirrors } from '../../test/support/registries.ts'
import { executable, type Server, startServer } from '../../test/support/server.ts'
import { until } from '../../test/support/until.ts'

const [address] = Object.values(networkInterfaces()).flatMap(each =>
  (each ?? []).flatMap(({ family, internal, address }) => (family === 'IPv4' && !internal ? [address] : [])),
)
if (address === undefined) throw new Error('this machine has no address but its loopback')

const packages = [
  ...['ca-certificates', 'curl', 'git', 'libpython3-stdlib', 'openssh-client', 'openssh-server', 'postgresql'],
  ...['python3-minimal', 'redis-server', 'redis-tools'],
]
const scratch = mkdtempSync('/var/tmp/threadbox-clients-')
chmodSync(scratch, 0o755)
const system = process.env.THREADBOX_PROOF_SYSTEM ?? join(scratch, 'system')
const [DATABASE, CACHE, SHELL] = [15432, 16379, 10022]

async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [said, problems, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`${command.join(' ')}: ${said.slice(-1000)}${problems}`)
  return said
}

const answers = (port: number) =>
  Bun.connect({ hostname: address, port, socket: { data() {} } }).then(
    socket => !socket.end(),
    () => false,
  )

const started: Bun.Subprocess[] = []
/** A copy of the system, in which the servers write. */
const servers = join(scratch, 'servers')
const inSystem = (...command: string[]) => ['chroot', servers, ...command]
const start = (...command: string[]) =>
  started.push(Bun.spawn(inSystem(...command), { stdio: ['ignore', 'ignore', 'ignore'] }))

/** Starts the servers, and resolves when each takes connections. Gives the key that the SSH server lets in, and the port of the HTTP server. */
async function serve(): Promise<{ key: string; web: Bun.Server<undefined> }> {
  await run(...inSystem('sh', '-c', 'install -d -o postgres /srv/database; install -d /run/sshd; chmod 1777 /tmp'))
  const asPostgres = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']
  const [binaries = ''] = globSync(join(servers, 'usr/lib/postgresql/*/bin'))
  const bin = binaries.slice(servers.length)
  await run(...inSystem(...asPostgres, `${bin}/initdb`, '-D', '/srv/database', '-A', 'trust', '--no-locale'))
  writeFileSync(join(servers, 'srv/database/pg_hba.conf'), 'host all all 0.0.0.0/0 trust\n')
  const settings = [
    `listen_addresses=${address}`,
    `port=${DATABASE}`,
    'unix_socket_directories=',
    'dynamic_shared_memory_type=mmap',
  ]
  start(...asPostgres, `${bin}/postgres`, '-D', '/srv/database', ...settings.flatMap(each => ['-c', each]))
  start('redis-server', '--bind', address ?? '', '--port', String(CACHE), '--protected-mode', 'no', '--save', '')
  await run(...inSystem('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', '/srv/key'))
  await run(...inSystem('ssh-keygen', '-A'))
  const options = [
    `ListenAddress=${address}`,
    'AuthorizedKeysFile=/srv/key.pub',
    'StrictModes=no',
    'UsePAM=no',
    'PermitRootLogin=yes',
  ]
  start('/usr/sbin/sshd', '-D', '-p', String(SHELL), ...options.flatMap(each => ['-o', each]))
  const repository =
    'git init -q -b main /srv/git && cd /srv/git && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one'
  await run(...inSystem('sh', '-c', repository))
  const [cargo = ''] = globSync('/root/.rustup/toolchains/stable-*/bin/cargo')
  const web = Bun.serve({
    hostname: address ?? '',
    port: 0,
    fetch: ({ url }) => new Response(url.endsWith('/cargo') ? Bun.file(cargo) : 'reached'),
  })
  for (const port of [DATABASE, CACHE, SHELL]) await until(() => answers(port))
  return { key: await Bun.file(join(servers, 'srv/key')).text(), web }
}

interface Client {
  name: string
  /** Whether it is one of Debian's base and of the image, or else of this machine. */
  isOfSystem: boolean
  command: string
  /** What it prints when it has reached its server. */
  prints: string | RegExp
}

function listClients(key: string, web: number): Client[] {
  const ssh = `ssh -q -i ~/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -p ${SHELL}`
  const withKey = `cat >~/key <<'END'\n${key}END\nchmod 600 ~/key; `
  const java = `class Get { public static void main(String[] a) throws Exception {
System.out.print(new String(new java.net.URL("http://web.test:${web}/").openStream().readAllBytes())); } }`
  const go = `package main
import ("io"; "net/http"; "os")
func main() { r, e := http.Get("http://web.test:${web}/"); if e != nil { panic(e) }; io.Copy(os.Stdout, r.Body) }`
  const manifest = '[package]\nname = "a"\nversion = "0.1.0"\n[lib]\npath = "a.rs"\n[dependencies]\nitoa = "1"\n'
  const ofSystem = [
    ['psql, PostgreSQL', `psql -h db.test -p ${DATABASE} -U postgres -Atc 'select 6*7'`, '42'],
    ['redis-cli, Redis', `redis-cli -h cache.test -p ${CACHE} ping`, 'PONG'],
    ['ssh, OpenSSH', `${withKey}${ssh} root@git.test echo reached`, 'reached'],
    ['git over SSH', `${withKey}GIT_SSH_COMMAND='${ssh}' git ls-remote root@git.test:/srv/git`, 'refs/heads/main'],
    [
      'Python’s sockets',
      `python3 -c 'import socket; s = socket.create_connection(("web.test", ${web})); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.makefile().read())'`,
      'reached',
    ],
    ['curl', `curl -sS http://web.test:${web}/`, 'reached'],
    [
      'apt',
      'cd /tmp && apt-get -qq -o APT::Sandbox::User=root update && apt-get -qq -o APT::Sandbox::User=root download hello && ls hello*',
      /hello_.*deb/,
    ],
  ] as const
  const ofMachine = [
    [
      'Node’s fetch',
      `node -e 'console.log(process.version); fetch("http://web.test:${web}/").then(r => r.text()).then(console.log)'`,
      'reached',
    ],
    ['Java', `cat >Get.java <<'END'\n${java}\nEND\njava Get.java`, 'reached'],
    ['Go', `cat >main.go <<'END'\n${go}\nEND\nGOTOOLCHAIN=local /usr/local/go/bin/go run main.go`, 'reached'],
    ['npm', 'npm view is-odd version', /^\d+\.\d+/],
    ['pip', 'pip download -q --no-deps --dest . idna && ls idna*', 'idna'],
    [
      'go',
      'mkdir m && cd m && /usr/local/go/bin/go mod init a && /usr/local/go/bin/go mod download -json golang.org/x/text@v0.3.8',
      'v0.3.8',
    ],
    [
      'cargo',
      `curl -sS -o cargo http://web.test:${web}/cargo && chmod +x cargo && printf '${manifest.replaceAll('\n', '\\n')}' >Cargo.toml && touch a.rs && ./cargo generate-lockfile && cat Cargo.lock`,
      'itoa',
    ],
  ] as const
  return [...ofSystem, ...ofMachine].map(([name, command, prints], at) => ({
    name,
    command,
    prints,
    isOfSystem: at < ofSystem.length,
  }))
}

const LONGEST_MS = 600_000
const without = 'unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy ALL_PROXY all_proxy NODE_USE_ENV_PROXY'
const rules = { networkAllowOut: ['*.test', `${address}/32`, '0.0.0.0/0'] }

async function tryAll(
  server: Server,
  clients: readonly Client[],
  agents: Record<'system' | 'machine', string | undefined>,
) {
  const results = new Map<string, string>()
  const ids = new Map<string, string>()
  for (const { name, isOfSystem, command, prints } of clients) {
    const agent = isOfSystem ? agents.system : agents.machine
    if (agent === undefined) continue
    const id = ids.get(agent) ?? (await server.sandbox({ agent, ...rules }))
    ids.set(agent, id)
    const begun = performance.now()
    // Go compiles its library, which takes a busy machine minutes.
    const { body } = await server.ask('POST', `/v1/sandboxes/${id}/exec`, {
      command: `${without}\n${command}`,
      timeoutMs: LONGEST_MS,
    })
    const { stdout = '', stderr = JSON.stringify(body) } = body
    const isGood = typeof prints === 'string' ? stdout.includes(prints) : prints.test(stdout)
    if (!isGood) console.error(`${name}: ${stdout.slice(-300)}${stderr.slice(-600)}`)
    console.error(`${name}: ${isGood ? 'reached' : 'not reached'}`)
    results.set(name, isGood ? `${Math.round(performance.now() - begun)} ms` : 'NO')
  }
  return results
}

const dockerd = new Dockerd({})
try {
  if (!existsSync(system)) await run('debootstrap', '--variant=minbase', `--include=${packages}`, 'bookworm', system)
  await run('cp', '-a', system, servers)
  const { key, web } = await serve()
  const clients = listClients(key, web.port ?? 0)
  const hosts = join(scratch, 'hosts')
  const names = ['db', 'cache', 'git', 'web'].map(each => `${address} ${each}.test`)
  writeFileSync(hosts, [await Bun.file('/etc/hosts').text(), ...names, ''].join('\n'))
  const agents = join(scratch, 'agents')
  mkdirSync(agents)
  writeFileSync(
    join(agents, 'debian.json'),
    JSON.stringify({ slug: 'debian', engine: 'echo', sandbox: { base: system } }),
  )
  const program = join(scratch, 'threadbox')
  copyFileSync(executable, program)
  const home = join(scratch, 'home')
  mkdirSync(home)
  chownSync(home, 54_321, 54_321)
  const withHosts = (...command: string[]) => [
    ...['unshare', '--mount', 'sh', '-c', `mount --bind ${hosts} /etc/hosts && exec "$@"`, 'sh'],
    ...command,
  ]
  const shared = ['--network-private', [...new Set([`${address}/32`, ...mirrors])].join(','), '--spares', '0']
  const onNsjail = { flags: [...shared, '--agents', agents] }
  const columns = new Map<string, Map<string, string>>()
  const wanted = process.argv.slice(2)
  const isWanted = (name: string) => wanted.length === 0 || wanted.includes(name)
  if (isWanted('root')) {
    await using server = await startServer({ ...onNsjail, command: withHosts(program) })
    columns.set('nsjail, root', await tryAll(server, clients, { system: 'debian', machine: 'echo' }))
  }
  if (isWanted('user')) {
    // Without root a base is one of the user's own.
    const own = join(home, 'system')
    await run('cp', '-a', system, own)
    await run('chown', '-R', '54321:54321', own)
    writeFileSync(
      join(agents, 'debian.json'),
      JSON.stringify({ slug: 'debian', engine: 'echo', sandbox: { base: own } }),
    )
    const command = withHosts('setpriv', '--reuid=54321', '--regid=54321', '--clear-groups', program)
    await using server = await startServer({
      ...onNsjail,
      command,
      env: { HOME: home },
      dataDirectory: join(home, 'data'),
    })
    columns.set('nsjail, ordinary user', await tryAll(server, clients, { system: 'debian', machine: 'echo' }))
  }
  if (isWanted('docker')) {
    await dockerd.open()
    await dockerd.api.import('clients', system)
    const flags = [...shared, '--backend', 'docker', '--docker-image', 'clients']
    await using server = await startServer({ flags, command: withHosts(program), env: { DOCKER_HOST: dockerd.host } })
    columns.set('docker', await tryAll(server, clients, { system: 'echo', machine: undefined }))
  }
  console.log(`| client | ${[...columns.keys()].join(' | ')} |\n|---|${'---|'.repeat(columns.size)}`)
  for (const { name } of clients) {
    console.log(`| ${name} | ${[...columns.values()].map(each => each.get(name) ?? '').join(' | ')} |`)
  }
  web.stop(true)
  process.exitCode = [...columns.values()].some(each => [...each.values()].includes('NO')) ? 1 : 0
} finally {
  await dockerd.close()
  for (const each of started) each.kill('SIGINT')
  await Promise.all(started.map(each => each.exited))
  rmSync(scratch, { recursive: true, force: true })
}
