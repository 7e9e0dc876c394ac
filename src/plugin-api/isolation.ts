/**
 * How strongly a sandbox is kept apart from its host, from the weakest to the strongest. `namespaces`: processes of the host's
 * kernel in namespaces of their own. `container`: the same, by an engine of containers. `gvisor`: behind a kernel in user space.
 * `microvm`: in a virtual machine with a kernel of its own.
 */
export type Isolation = 'namespaces' | 'container' | 'gvisor' | 'microvm'
