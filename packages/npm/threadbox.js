#!/usr/bin/env node
// Becomes the executable for this platform, which is in a package of its own.
'use strict'
const { spawn } = require('node:child_process')
const { readFileSync } = require('node:fs')

const name = `@threadbox/${process.platform}-${process.arch}`
let executable = ''
try {
  executable = require.resolve(`${name}/bin/threadbox`)
} catch {
  console.error(`threadbox: the package ${name} is not installed. There are packages for linux-x64 and linux-arm64; \
they are optional dependencies, which npm leaves out with --omit=optional.`)
  process.exit(125)
}

const words = process.argv.slice(2)
// From Node 22.15 on nothing of Node stays: signals, terminal and exit code are the executable's own.
if (process.execve) process.execve(executable, [executable, ...words], process.env)

// Before there is a child: as soon as it runs, somebody may end it by a signal to this process.
for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT']) {
  process.on(signal, () => {
    // A terminal sends what is typed there to both.
    if (signal === 'SIGTERM' || !isInForeground()) child.kill(signal)
  })
}
const child = spawn(executable, words, { stdio: 'inherit' })
child.on('error', error => {
  console.error(`threadbox: ${error.message}`)
  process.exit(125)
})
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code ?? 1)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
})

/** True when a terminal counts this process among those that it interrupts. */
function isInForeground() {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[2] === fields[5]
  } catch {
    return false
  }
}
