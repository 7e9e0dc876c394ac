/**
 * Writes a sandbox's id as E2B's clients need it: of letters and digits alone, because it is a part of host names and clients cut
 * ids at a hyphen.
 */
export const toE2bId = (sandboxId: string): string => sandboxId.replaceAll(/[_-]/g, '')

/**
 * Reads an id in E2B's form, with or without the suffix that old clients append, or in this server's own form. Undefined when the
 * text is no sandbox's id.
 */
export function readE2bId(text: string): string | undefined {
  const [, hex] = /^sbx_?([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})(?:-[a-z0-9]{1,40})?$/.exec(text) ?? []
  const digits = hex?.replaceAll('-', '')
  return digits?.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, 'sbx_$1-$2-$3-$4-$5')
}
