import notices from './notices.txt' with { type: 'file' }

/** Prints the notices of all that the executable embeds. */
export async function licenses(): Promise<void> {
  await Bun.write(Bun.stdout, Bun.file(notices))
}
