import { systemctl } from '../service/systemd.ts'

/** Whether a process belongs to the unit that `service install` writes. */
export function isServiceProcess(pid: number): boolean {
  try {
    return systemctl('show', '--property=MainPID', 'threadbox').output === `MainPID=${pid}`
  } catch {
    return false
  }
}

// Without --no-block, systemctl would wait until the server is ready, however often it fails.
export const startService = (): void => {
  systemctl('reset-failed', 'threadbox')
  systemctl('--no-block', 'start', 'threadbox').orThrow()
}

export const restartService = (): void => {
  systemctl('reset-failed', 'threadbox')
  systemctl('--no-block', 'restart', 'threadbox').orThrow()
}

export const stopService = (): void => systemctl('stop', 'threadbox').orThrow()
