/** What an id begins with, before `_` and a UUIDv7. */
export type IdPrefix =
  | 'agt' // agent
  | 'apr' // approval
  | 'brn' // branch
  | 'call' // model call
  | 'dep' // deployment
  | 'env' // environment
  | 'exec' // one command that a caller runs
  | 'key' // API key
  | 'msg' // message
  | 'req' // request
  | 'rule' // what a person has approved for good
  | 'run'
  | 'sbx' // sandbox
  | 'sch' // schedule
  | 'scr' // run of a schedule
  | 'sec' // secret
  | 'ses' // a browser that is signed in
  | 'snap' // snapshot
  | 'team'
  | 'thr' // thread
  | 'whk' // webhook

/** How each secret begins, so that a scanner, a log filter and a reader can tell what was leaked. */
export const secretPrefixes = {
  /** An API key of a team. */
  apiKey: 'tbx_',
  /** The prefix of keys for E2B's clients, which expect hexadecimal digits after it. */
  e2bKey: 'e2b_',
  /** A browser's token, signed. */
  token: 'tbt_',
  /** The prefix of the secret in a signed-in browser's cookie. */
  session: 'tbs_',
  /** The prefix of the secret at the end of a sign-in link. */
  signIn: 'tbi_',
  /** A link to one port of a sandbox, signed. */
  link: 'tbl_',
  /** The model token of one run. */
  run: 'tbr_',
  /** The model token of a program that outlives its turn, one for each thread. */
  program: 'tbp_',
  /** The prefix of tokens with which E2B's clients use a sandbox's commands and files. */
  e2bAccess: 'tbe_',
  /** The prefix of tokens with which they use a sandbox's private ports. */
  e2bTraffic: 'tbf_',
} as const

/** What a browser keeps before the name of each cookie that a server in a sandbox has set. */
export const COOKIE_PREFIX = 'tbc_'
