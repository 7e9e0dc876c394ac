/** Runs a program to its end and returns its output. Throws with the program's messages when it fails. */
export async function run(command: readonly string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  const { cwd, env = {} } = options
  const child = Bun.spawn([...command], {
    ...(cwd !== undefined && { cwd }),
    env: { PATH: process.env.PATH, HOME: process.env.HOME, LC_ALL: 'C.UTF-8', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`${command.join(' ')}: exit code ${code}\n${stdout}${stderr}`)
  return stdout
}
