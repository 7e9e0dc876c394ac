const TITLE = '# The authority of threadbox, for hosts with secrets'
const [BEGIN, END] = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----']

/** Returns a PEM text with an authority at its end. The one that was added before is removed. */
export function withAuthority(pem: string, authority: string, former: string | undefined): string {
  let rest = pem
  for (let at = rest.indexOf(TITLE); at >= 0; at = rest.indexOf(TITLE)) {
    const end = rest.indexOf(END, at)
    // A certificate without an end line is broken; it must not hide those that follow.
    rest = rest.slice(0, at) + (end < 0 ? rest.slice(at + TITLE.length) : rest.slice(end + END.length).trimStart())
  }
  // update-ca-certificates removes comments, so the certificates are also searched for without them.
  for (const each of [former, authority]) if (each?.trim()) rest = rest.replaceAll(each.trim(), '')
  return `${rest.trimEnd()}\n${TITLE}\n${authority.trim()}\n`.trimStart()
}

/** Whether text has a certificate at all. */
export const hasCertificate = (pem: string): boolean => pem.includes(BEGIN) && pem.includes(END)
