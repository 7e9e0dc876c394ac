import type { Flag } from '../read/arguments.ts'
import { idsAlone, json, oneOff, place, quiet, replyAlone, server, team, verbose } from './common-flags.ts'

/** One command: the source of its help and of its parser. */
export interface Command {
  /** The words that choose it. */
  name: string
  /** The operands that follow: optional ones in brackets, repeatable ones with `…`. */
  operands?: string
  /** One short phrase. */
  help: string
  /** What else a user has to know. */
  more?: string
  flags?: readonly Flag[]
  /** The settings of `serve` that it accepts too. */
  settings?: 'all' | readonly string[]
  examples: readonly string[]
  /** Only threadbox itself starts it; help does not show it. */
  isInternal?: true
}

/** Every command, grouped by subject. */
export const commands: readonly Command[] = [
  {
    name: 'serve',
    help: 'run the server',
    more: 'Each flag is also THREADBOX_NAME in the environment and "name" in the file of --config.',
    settings: 'all',
    examples: ['threadbox serve --port 8080 --model anthropic/claude-sonnet-4-6'],
  },
  {
    name: 'doctor',
    help: 'check what the server needs, and show what is missing',
    settings: 'all',
    examples: ['threadbox doctor', 'threadbox doctor --backend docker'],
  },
  {
    name: 'keys create',
    help: 'make an API key',
    flags: [
      { name: 'name', value: 'NAME', default: 'key', help: 'what the list calls it' },
      { ...team, help: 'whose agents and sandboxes it sees' },
      { name: 'expires-in', value: 'DAYS', help: 'how long it is good for, like 30d' },
      { name: 'quiet', help: 'print the key alone' },
    ],
    settings: place,
    examples: ['threadbox keys create --name ci --expires-in 30d'],
  },
  {
    name: 'keys list',
    help: 'list API keys',
    flags: [json, idsAlone],
    settings: place,
    examples: ['threadbox keys list'],
  },
  {
    name: 'keys revoke',
    operands: 'ID',
    help: 'refuse an API key from now on',
    flags: [quiet],
    settings: place,
    examples: ['threadbox keys revoke key_01h2'],
  },
  {
    name: 'agents apply',
    operands: 'PATH',
    help: "make or change agents from a file, or a directory's",
    flags: [team, quiet],
    settings: [...place, 'plugin'],
    examples: ['threadbox agents apply agents/'],
  },
  {
    name: 'agents deploy',
    operands: 'PATH',
    help: 'bundle agents of code and send them to a server',
    flags: [
      { name: 'agent', value: 'SLUG', help: 'deploy only this agent of the directory' },
      { name: 'name', value: 'SLUG', help: 'deploy it under this slug' },
      { name: 'engine', value: 'NAME', help: 'the engine that runs it' },
      ...server,
    ],
    examples: ['threadbox agents deploy agents/ --agent adder'],
  },
  {
    name: 'agents list',
    help: 'list agents',
    flags: [team, json, idsAlone],
    settings: place,
    examples: ['threadbox agents list'],
  },
  {
    name: 'agents show',
    operands: 'SLUG',
    help: 'print an agent, without values that may be secret',
    flags: [team, quiet],
    settings: place,
    examples: ['threadbox agents show coder'],
  },
  {
    name: 'agents remove',
    operands: 'SLUG',
    help: 'remove an agent; its sandboxes stay',
    flags: [team, quiet],
    settings: place,
    examples: ['threadbox agents remove reviewer'],
  },
  {
    name: 'base add',
    operands: 'NAME FILE',
    help: 'add a root file system for sandboxes on nsjail',
    more: 'FILE is a tarball: plain, gzip, xz or zstd. With - it is read from the standard input.',
    flags: [quiet],
    settings: place,
    examples: [
      'threadbox base add alpine alpine-minirootfs.tar.gz',
      'docker export $(docker create python:3.13) | threadbox base add python -',
    ],
  },
  {
    name: 'base list',
    help: 'list bases, with how many sandboxes use each',
    flags: [json, idsAlone],
    settings: place,
    examples: ['threadbox base list'],
  },
  {
    name: 'base remove',
    operands: 'NAME',
    help: 'remove a base that no sandbox uses',
    flags: [quiet],
    settings: place,
    examples: ['threadbox base remove alpine'],
  },
  {
    name: 'chat',
    operands: '[AGENT] [MESSAGE…]',
    help: 'talk to an agent of a server',
    more: `The agent is echo unless named. Without a message it talks in the terminal and goes on with the last thread; Ctrl-C \
cancels the reply, twice leaves; /help shows more. With a message, or input from a pipe, it prints one reply and ends.`,
    flags: [
      { name: 'new', help: 'begin a new thread in a new sandbox' },
      { name: 'sandbox', value: 'ID', help: 'with --thread: the sandbox to go on in' },
      { name: 'thread', value: 'ID', help: 'with --sandbox: the thread to go on with' },
      replyAlone,
      ...server,
    ],
    examples: ['threadbox chat coder', "threadbox chat coder 'Write a haiku to haiku.txt'"],
  },
  {
    name: 'sandboxes list',
    help: 'list the sandboxes of a server',
    flags: [json, idsAlone, ...server],
    examples: ['threadbox sandboxes list --json'],
  },
  {
    name: 'sandboxes show',
    operands: 'SANDBOX',
    help: 'show a sandbox, how it is confined and its threads',
    flags: [json, ...server],
    examples: ['threadbox sandboxes show sbx_01h2'],
  },
  {
    name: 'sandboxes remove',
    operands: 'SANDBOX…',
    help: 'delete sandboxes, with their files and threads',
    flags: [quiet, ...server],
    examples: ['threadbox sandboxes remove sbx_01h2'],
  },
  {
    name: 'strays list',
    help: 'list environments that no sandbox of the database has; a server keeps them for a week',
    flags: [json, idsAlone],
    settings: place,
    examples: ['threadbox strays list'],
  },
  {
    name: 'strays adopt',
    operands: 'ENVIRONMENT',
    help: 'give such an environment a new sandbox, with its files',
    flags: [{ name: 'agent', value: 'SLUG', help: 'the agent of the new sandbox' }, team],
    settings: place,
    examples: ['threadbox strays adopt env_01h2 --agent coder'],
  },
  {
    name: 'threads list',
    operands: '[SANDBOX]',
    help: 'list the threads of a sandbox, or the last 200 of all, newest first',
    flags: [
      { name: 'search', value: 'WORDS', help: 'only those in which this was said, of all sandboxes' },
      json,
      idsAlone,
      ...server,
    ],
    examples: ['threadbox threads list sbx_01h2', "threadbox threads list --search 'haiku'"],
  },
  {
    name: 'threads rename',
    operands: 'SANDBOX THREAD NAME…',
    help: 'give a thread another name',
    flags: [quiet, ...server],
    examples: ['threadbox threads rename sbx_01h2 thr_01h2 Haiku'],
  },
  {
    name: 'threads show',
    operands: 'SANDBOX THREAD',
    help: 'print the messages of a thread',
    flags: [json, ...server],
    examples: ['threadbox threads show sbx_01h2 thr_01h2'],
  },
  {
    name: 'shell',
    operands: 'SANDBOX [COMMAND…]',
    help: 'a shell, or a command, in a sandbox of a server',
    more: 'With a terminal where there is one on both sides. Put -- before a command that has flags.',
    flags: server,
    examples: ['threadbox shell sbx_01h2', 'threadbox shell sbx_01h2 -- ls --all /home/user'],
  },
  {
    name: 'run',
    operands: '[PROMPT…]',
    help: 'give an agent one prompt in a sandbox, without a server',
    more: `Without a prompt it is read from a pipe. Exit code: 0, 1 when the reply failed, 2 for a mistake in the flags, 125 when \
threadbox itself could not. Nothing of the sandbox is left.`,
    flags: [
      { name: 'agent', value: 'AGENT', default: 'coder', help: "a slug, or an agent's file" },
      ...oneOff,
      { name: 'approve', value: 'HOW', help: 'all, none, or ask: what becomes of calls that want an approval' },
      { name: 'json', help: 'a line of JSON for each chunk of the reply' },
      replyAlone,
      verbose,
    ],
    settings: 'all',
    examples: ["threadbox run --file .=work --out work=fixed 'The tests of work/ fail. Fix them.'"],
  },
  {
    name: 'exec',
    operands: 'COMMAND…',
    help: 'run a command in a sandbox, without a server',
    more: `One word is a line of the shell, several are a program and its arguments; put -- before them. The exit code is the \
command's, 2 for a mistake in the flags, 125 when threadbox itself could not. Nothing of the sandbox is left.`,
    flags: [
      { name: 'agent', value: 'AGENT', default: 'echo', help: "a slug, or an agent's file" },
      ...oneOff,
      { name: 'json', help: 'a line of JSON for each piece of output, and for the exit code' },
      verbose,
    ],
    settings: 'all',
    examples: ["threadbox exec --file .=work -- 'cd work && sh test.sh'"],
  },
  {
    name: 'service install',
    help: 'install the server as a service of systemd',
    more: 'A second install changes only what is new, and restarts the server only then.',
    flags: [
      { name: 'print', help: 'print the unit and write nothing' },
      { name: 'user', value: 'NAME', help: 'the account that it runs under' },
      { name: 'root', value: 'DIR', default: '/', help: 'install into an image; nothing is started' },
    ],
    settings: 'all',
    examples: [
      'sudo ./threadbox service install --port 8080',
      'sudo OPENAI_API_KEY=… ./threadbox service install --model openai/gpt-5.2',
    ],
  },
  {
    name: 'service status',
    help: 'show whether it is installed and answers',
    flags: [{ name: 'root', value: 'DIR', default: '/', help: 'the root of an image' }],
    examples: ['sudo threadbox service status'],
  },
  {
    name: 'service remove',
    help: 'stop server and sandboxes; data and settings stay',
    flags: [{ name: 'root', value: 'DIR', default: '/', help: 'the root of an image' }],
    examples: ['sudo threadbox service remove'],
  },
  {
    name: 'plugin test',
    operands: 'FILE',
    help: 'run the contract suites on a plugin',
    settings: 'all',
    examples: ['threadbox plugin test script.ts'],
  },
  {
    name: 'plugin types',
    help: "print the types for a plugin author's editor",
    examples: ['threadbox plugin types > threadbox.d.ts'],
  },
  { name: 'version', help: 'print the version', examples: ['threadbox version'] },
  { name: 'licenses', help: 'print the notices of what is embedded', examples: ['threadbox licenses'] },
  {
    name: 'help',
    operands: '[COMMAND…]',
    help: 'print all commands, or the help of one',
    examples: ['threadbox help keys create'],
  },
  { name: 'guest', help: 'runs inside a sandbox; the server starts it', examples: [], isInternal: true },
  { name: 'tools', help: "runs an agent's own tools inside a sandbox", examples: [], isInternal: true },
  { name: 'guard', help: 'cleans up after a killed run or exec', examples: [], isInternal: true },
]
