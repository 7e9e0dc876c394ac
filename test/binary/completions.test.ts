import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { command, patiently, plainEnvironment, temporaryDirectory } from '../support/server.ts'

patiently()

/** Each shell completes in here: a directory `dir` and a file `file.txt` are all there is. */
let directory = ''
const at = (name: string) => join(directory, name)

beforeAll(async () => {
  directory = temporaryDirectory()
  mkdirSync(at('here/dir'), { recursive: true })
  writeFileSync(at('here/file.txt'), '')
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout, stderr } = await command(['completions', shell])
    expect([code, stderr]).toEqual([0, ''])
    // The name under which zsh looks for it.
    writeFileSync(at(shell === 'zsh' ? '_threadbox' : shell), stdout)
  }
})
afterAll(() => rmSync(directory, { recursive: true }))

async function run(words: readonly string[]): Promise<string> {
  const env = { ...plainEnvironment, HOME: directory, TERM: 'dumb', LC_ALL: 'C.UTF-8' }
  const child = Bun.spawn([...words], { cwd: at('here'), env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(stderr).toBe('')
  return stdout
}

/** What completes `line`. */
const shells: Record<string, (line: string) => Promise<string[]>> = {
  async bash(line) {
    // As readline does it: = stands alone.
    const words = line.split(/ |(=)/).filter(word => word !== undefined)
    const script = `set -u; . ${at('bash')}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _threadbox; printf '%s\\n' "\${COMPREPLY[@]}"`
    return (await run(['bash', '--norc', '-c', script, 'bash', ...words])).split('\n').filter(Boolean)
  },
  async zsh(line) {
    // A terminal of its own, in which what compadd would offer is printed instead.
    const setUp = `PS1=; fpath=(${directory} $fpath); autoload -U compinit; compinit -u -d ${at('zsh-dump')}
compadd () { if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
typeset -a __hits; builtin compadd -A __hits "$@"; builtin compadd "$@"; print -rl -- "HIT:"$^__hits }
bindkey '^I' complete-word; zle -C complete-word complete-word _main_complete; zle-done () { zle -M ''; print END; exit }
zle -N zle-done; bindkey '^X' zle-done; print READY`
    writeFileSync(at('set-up'), setUp)
    const script = `zmodload zsh/zpty; zpty z zsh -f -i; zpty -w z 'source ${at('set-up')}'; zpty -r z out '*READY*'
zpty -w -n z ${JSON.stringify(line)}$'\\t\\C-x'; zpty -r z out '*END*'; print -r -- $out`
    const hits = (await run(['zsh', '-f', '-c', script])).matchAll(/HIT:([^\r\n]*)/g)
    return [...new Set([...hits].map(([, hit = '']) => hit))]
  },
  async fish(line) {
    const script = `source ${at('fish')}; complete -C "${line}"`
    const lines = (await run(['fish', '--no-config', '-c', script])).split('\n').filter(Boolean)
    return lines.map(each => each.split('\t')[0] ?? '')
  },
}

describe.each(Object.keys(shells))('%s completes', shell => {
  const complete = (line: string) => shells[shell]?.(line) ?? []

  const completeAll = (...lines: string[]) => Promise.all(lines.map(complete))
  /** As one writes them: some shells give a value with its flag, a flag with its =, a directory with its /. */
  const plain = (words: string[]) => words.map(word => word.replace(/^.*=(?=.)|[=/ ]$/g, '')).toSorted()

  test('commands and their actions', async () => {
    const [all = [], keys = [], actions = []] = await completeAll('threadbox ', 'threadbox ke', 'threadbox keys ')
    expect(all).toContain('serve')
    expect(all).not.toContain('guest')
    const { stdout } = await command(['help', 'keys'])
    const named = [...stdout.matchAll(/^ {2}keys (\w+)/gm)].map(([, action = '']) => action)
    expect(named).toContain('create')
    expect([plain(keys), plain(actions)]).toEqual([['keys'], named.toSorted()])
  })

  test('flags, of the command and of the settings that it takes', async () => {
    const flags = await completeAll('threadbox keys create --sc', 'threadbox serve --network', 'threadbox version --ne')
    expect(flags.map(plain)).toEqual([['--scopes'], ['--network', '--network-private'], []])
  })

  test('values: words of a choice, directories, files, and nothing where it cannot know', async () => {
    const values = await completeAll(
      'threadbox serve --network=',
      'threadbox serve --network ',
      'threadbox serve --data-dir ',
      'threadbox agents apply f',
      'threadbox serve --port ',
    )
    expect(values.map(plain)).toEqual([['none', 'public'], ['none', 'public'], ['dir'], ['file.txt'], []])
  })
})

test('another shell is refused', async () => {
  const { code, stderr } = await command(['completions', 'ksh'])
  expect([code, stderr]).toEqual([2, 'threadbox: ksh: there are completions for bash, zsh and fish\n'])
})

describe('the manual page', () => {
  let page = ''
  beforeAll(async () => {
    page = (await command(['man'], { env: { SOURCE_DATE_EPOCH: '1767225600' } })).stdout
    writeFileSync(at('threadbox.1'), page)
  })

  test('is of this version, and of the day that the build says', () => {
    expect(page).toStartWith(`.TH THREADBOX 1 2026-01-01 "threadbox ${packageJson.version}"`)
  })

  test('has no fault that man or mandoc finds', async () => {
    expect(await run(['mandoc', '-T', 'lint', '-W', 'warning', at('threadbox.1')])).toBe('')
    // `run` holds what it warns of to nothing.
    expect(await run(['man', '--warnings', '-E', 'UTF-8', '-l', at('threadbox.1')])).toContain('THREADBOX(1)')
  })

  test('says of every command and setting what help says', async () => {
    const shown = await run(['sh', '-c', 'mandoc -T utf8 -O width=1000 "$0" | col -b', at('threadbox.1')])
    const { stdout } = await command(['help'])
    const [, rows = ''] = /\[FLAGS\]\n\n([\s\S]*?)\n\nwhat threadbox starts/.exec(stdout) ?? []
    const names = [...rows.matchAll(/^ {2}([a-z-]+(?: [a-z]+)?)/gm)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(30)
    expect(names.filter(name => !shown.includes(`\n   threadbox ${name}`))).toEqual([])
    const settings = [...(await command(['serve', '--help'])).stdout.matchAll(/^ {2}(--[a-z0-9-]+)/gm)]
    expect(
      settings
        .filter(([, flag]) => !shown.includes(`\n     ${flag} `) && !shown.includes(`\n       ${flag} `))
        .map(([, flag]) => flag),
    ).toEqual([])
  })
})
