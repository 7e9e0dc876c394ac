import type { GuestRequest } from './requests.ts'

/**
 * The version of what servers and guests say to each other, in a guest's first frame. A sandbox that runs keeps the guest it was
 * started with, so a server meets guests of earlier releases, and after a way back of later ones: what was said once keeps its
 * meaning. A release that adds a request, a field or a control message counts this up; the former guest is then kept as a
 * fixture by scripts/guest-fixture.
 */
export const WIRE_VERSION = 2

/**
 * Guests before this version are refused. Guests that send no version count as 0: they are those of frame protocol 3 before there were
 * versions.
 */
export const OLDEST_GUEST = 0

/** A guest of ours refuses nothing of servers from this version on. */
export const OLDEST_SERVER = 0

/** The version since which guests know a request. */
export const knownSince: Readonly<Record<GuestRequest['op'], number>> = {
  spawn: 0,
  read: 0,
  write: 0,
  info: 0,
  list: 0,
  mkdir: 0,
  rename: 0,
  remove: 0,
  watch: 2,
  connect: 0,
  'listen-for-proxy': 0,
  'listen-for-direct': 2,
  names: 2,
  'listen-for-ssh-agent': 2,
  start: 0,
  processes: 0,
  process: 0,
  output: 0,
  input: 0,
  'end-input': 0,
  signal: 0,
  resize: 0,
  forget: 0,
}

/** The version since which guests keep owners and attributes of files. */
export const FILE_DETAILS_SINCE = 2

/** What a guest of this build says first. */
export const hello = (protocol: number) => ({
  protocol,
  version: WIRE_VERSION,
  oldestServer: OLDEST_SERVER,
  offersDescriptors: true,
})
