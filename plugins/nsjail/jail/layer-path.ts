/** The kernel takes no longer mount option, and these characters have a meaning in it. */
const MAX_LAYER_BYTES = 255
const unfit = /[,:\\]/

/** Whether a directory of the host can be a layer of a jail's overlays. */
export const isLayerPath = (path: string) => Buffer.byteLength(path) <= MAX_LAYER_BYTES && !unfit.test(path)

/** Throws an error that names the first path that cannot be a layer. */
export function assertLayerPaths(...paths: string[]): void {
  const bad = paths.find(path => !isLayerPath(path))
  if (bad === undefined) return
  throw new Error(`a sandbox cannot be in ${bad}: the path is too long or has a comma, colon or backslash`)
}
