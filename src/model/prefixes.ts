/** What an id begins with, before `_` and a UUIDv7. */
export type IdPrefix =
  | 'agt' // agent
  | 'apr' // approval
  | 'brn' // branch
  | 'call' // model call
  | 'dep' // deployment
  | 'env' // environment
  | 'key' // API key
  | 'msg' // message
  | 'rule' // what a person has approved for good
  | 'run'
  | 'sbx' // sandbox
  | 'team'
  | 'thr' // thread

/** How each secret begins, so that a scanner, a log filter and a reader can tell what was leaked. */
export const secretPrefixes = {
  /** An API key of a team. */
  apiKey: 'tbx_',
  /** A browser's token, signed. */
  token: 'tbt_',
  /** A link to one port of a sandbox, signed. */
  link: 'tbl_',
  /** The model token of one run. */
  run: 'tbr_',
  /** The model token of a program that outlives its turn, one for each thread. */
  program: 'tbp_',
} as const

/** What a browser keeps before the name of each cookie that a server in a sandbox has set. */
export const COOKIE_PREFIX = 'tbc_'
