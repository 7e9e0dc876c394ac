/** The addresses of a sandbox's own interface. Like those of the pool of names, nothing outside has them. */
export const OWN_ADDRESS = Uint8Array.of(198, 18, 0, 1)
export const OWN_ADDRESS_6 = Uint8Array.of(0xfd, 0x74, 0x68, 0x72, 0x65, 0x61, 0x64, 0x62, 0, 0, 0, 0, 0, 0, 0, 1)

/** Connections to any address arrive inside at this port of 127.0.0.1 and ::1. */
export const DIRECT_PORT = 3129

/** Questions for names arrive here, whatever resolver they were meant for. */
export const NAMES_PORT = 53

/** The protocols of the parts of the kernel that are asked, as Linux numbers them. */
export const NETLINK_ROUTE = 0
export const NETLINK_NETFILTER = 12

/** A process prints this when it has redirected its own network. */
export const REDIRECTED = 'redirected'
