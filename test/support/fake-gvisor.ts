import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** RLIMIT_LOCKS, which gVisor lets nobody change. */
const locks = 10

/** The change of a container's seccomp profile, in jq: with gVisor's arguments, and without them. */
const changes = {
  /** Nobody can change the limit of file locks; the rest of the profile applies. */
  kept: `.linux.seccomp.syscalls |= map(select(
    (.names | any(. == "setrlimit" or . == "prlimit64")) and ((.args // []) | any(.valueTwo == ${locks})) | not))`,
  /** Without --oci-seccomp, only changes of that limit are refused. */
  dropped: `.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": .linux.seccomp.architectures, "syscalls": [
    {"names": ["setrlimit"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": ${locks}, "op": "SCMP_CMP_EQ"}]},
    {"names": ["prlimit64"], "action": "SCMP_ACT_ERRNO", "args": [
      {"index": 1, "value": ${locks}, "op": "SCMP_CMP_EQ"}, {"index": 2, "value": 0, "op": "SCMP_CMP_NE"}]}]}`,
}

/** A program that engines run as they run runsc: runc, whose containers are marked as gVisor's have to be. */
export function writeFakeRunsc(directory: string, seccomp: keyof typeof changes): string {
  const path = join(directory, 'runsc')
  writeFileSync(
    path,
    `#!/bin/sh
for each; do [ "$last" = --bundle ] && bundle=$each; last=$each; done
if [ -n "$bundle" ]; then
  jq '${changes[seccomp]}' "$bundle/config.json" >"$bundle/changed.json" && cat "$bundle/changed.json" >"$bundle/config.json" || exit 1
fi
exec runc "$@"
`,
  )
  chmodSync(path, 0o755)
  return path
}
