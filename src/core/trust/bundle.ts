const TITLE = '# The authority of threadbox, for hosts with secrets'
const [BEGIN, END] = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----']

/** PEM with an authority at its end, in place of the one that was added before. */
export function withAuthority(pem: string, authority: string, former: string | undefined): string {
  let rest = pem
  for (let at = rest.indexOf(TITLE); at >= 0; at = rest.indexOf(TITLE)) {
    const end = rest.indexOf(END, at)
    // Without an end it is no certificate, and hides none that follows.
    rest = rest.slice(0, at) + (end < 0 ? rest.slice(at + TITLE.length) : rest.slice(end + END.length).trimStart())
  }
  // update-ca-certificates leaves no comments.
  for (const each of [former, authority]) if (each?.trim()) rest = rest.replaceAll(each.trim(), '')
  return `${rest.trimEnd()}\n${TITLE}\n${authority.trim()}\n`.trimStart()
}

/** Whether text has a certificate at all. */
export const hasCertificate = (pem: string): boolean => pem.includes(BEGIN) && pem.includes(END)
