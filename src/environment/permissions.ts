/** As ls prints them. `kind` is its first letter; `mode` may have more bits than those of the permissions. */
export function permissionsOf(kind: 'd' | 'l' | '-', mode: number): string {
  const letters = [...'rwxrwxrwx'].map((letter, index) => (mode & (0o400 >> index) ? letter : '-'))
  // setuid, setgid and sticky are shown in the place of the execute bits.
  for (const [bit, place, letter] of [
    [0o4000, 2, 's'],
    [0o2000, 5, 's'],
    [0o1000, 8, 't'],
  ] as const) {
    if (mode & bit) letters[place] = letters[place] === 'x' ? letter : letter.toUpperCase()
  }
  return kind + letters.join('')
}
