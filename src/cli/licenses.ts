import notices from './notices.txt' with { type: 'file' }

/** Prints the notices of all that the executable embeds. */
export async function licenses(): Promise<void> {
  try {
    await Bun.write(Bun.stdout, Bun.file(notices))
  } catch (error) {
    // `threadbox licenses | head`: who reads has seen enough.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error
  }
}
