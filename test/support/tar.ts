/** A member of an archive that tar itself would not write. */
export interface Member {
  name: string
  /** As in the header: 0 file, 1 hard link, 2 symbolic link, 3 character device, 5 directory, 6 FIFO. */
  type?: string
  link?: string
  text?: string | Buffer
  mode?: number
}

/** An archive of these members, to the byte. */
export const tarOf = (...members: Member[]): Buffer =>
  Buffer.concat([...members.flatMap(each => [headerOf(each), padded(each.text ?? '')]), Buffer.alloc(1024)])

function headerOf({ name, type = '0', link = '', text = '', mode = 0o644 }: Member): Buffer {
  const header = Buffer.alloc(512)
  const octal = (value: number, length: number) => value.toString(8).padStart(length - 1, '0')
  header.write(name, 0)
  header.write(octal(mode, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(Buffer.byteLength(text), 12), 124)
  header.write(octal(0, 12), 136)
  header.write('        ', 148)
  header.write(type, 156)
  header.write(link, 157)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${octal(sum, 7)}\0 `, 148)
  return header
}

function padded(text: string | Buffer): Buffer {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  return Buffer.concat([bytes, Buffer.alloc((512 - (bytes.byteLength % 512)) % 512)])
}
