import notices from './notices.txt' with { type: 'file' }

/** Prints the notices of everything that the executable embeds. */
export async function licenses(): Promise<void> {
  try {
    await Bun.write(Bun.stdout, Bun.file(notices))
  } catch (error) {
    // The reader has left, as in `threadbox licenses | head`.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error
  }
}
