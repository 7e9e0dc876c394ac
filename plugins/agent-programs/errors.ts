/** The agent program does not have the session that it was to go on with. */
export class SessionLost extends Error {}
