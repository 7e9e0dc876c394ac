const KIB = 1024
const MIB = 1024 * KIB

/**
 * The most that anyone outside may send, in one place: more than an honest client ever does, and little enough that
 * nothing of it stops a sandbox or the server. Lengths of texts are in UTF-16 code units unless the name says bytes.
 */
export const bounds = {
  /** Of a JSON body, and of a field of a form. */
  bodyBytes: 10 * MIB,
  /** Of all JSON bodies and fields of forms that are being read, or whose requests are being answered. */
  bodiesBytes: 128 * MIB,
  /** Of each body these do not count: commands and chats go through while large bodies wait. */
  smallBodyBytes: 64 * KIB,
  /** Of all messages of WebSockets that wait for someone to read them, or for their end. */
  messagesBytes: 128 * MIB,
  /** Of all calls to models that are on their way. */
  modelCallsBytes: 256 * MIB,
  /** Arrays and objects inside each other: deeper ones overflow the stack of whatever walks them later. */
  jsonDepth: 64,
  /** Values of a JSON text, keys apart. Small ones take up to a hundred times their text in memory. */
  jsonValues: 250_000,

  slug: 100,
  id: 200,
  /** Of a word of a closed list, as a mode or a type. */
  word: 100,
  name: 1000,
  cron: 200,
  /** A moment or a day, as ISO 8601 writes it. */
  moment: 100,
  path: 4096,
  /** Of what is searched for. */
  query: 1000,

  files: 10_000,
  /** Of one request. */
  forks: 100,
  variables: 1000,
  variableName: 256,
  /** Linux takes no single argument or variable of 128 KiB or more, its end included. */
  argument: 128 * KIB - 1,
  arguments: 10_000,
  /** Linux takes 2 MiB of arguments and variables together, each with a pointer. */
  argumentsBytes: 512 * KIB,
  variablesBytes: MIB,
  setupCommands: 100,
  setupCommand: 64 * KIB,

  messages: 10_000,
  parts: 1000,
  model: 300,
  systemPrompt: MIB,
  tools: 1000,
  tool: 500,
  permissionRules: 1000,
  /** As long as a path may be, and a command that is remembered. */
  permissionRule: 8 * KIB,
  clientTools: 100,
  clientToolName: 64,
  clientToolDescription: 8 * KIB,
  /** Of one input schema as JSON. */
  clientToolSchema: 32 * KIB,
  /** Of how long an approval or a tool of the client may wait: 30 days. */
  waitMs: 30 * 24 * 3600 * 1000,
  tokenAgents: 100,

  networkRules: 1000,
  networkRule: 300,

  secrets: 500,
  secretName: 100,
  secret: 64 * KIB,
  /** Of one agent, or of one sandbox's request. */
  bindings: 100,
  bindingHosts: 100,
  bindingPaths: 100,
  /** Of a header or parameter that a binding looks for. */
  matchedText: 4096,
  /** Of all bindings together as JSON: they are looked at with each connection. */
  bindingsChars: 32 * KIB,

  mcpServers: 100,
  headers: 100,
  header: 8 * KIB,
  url: 8 * KIB,
} as const

/** What an error repeats of a text that a caller chose, and no more of it. */
const EXCERPT = 100

/** The beginning of a text, when it is long. */
export const excerpt = (text: string): string => (text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text)
