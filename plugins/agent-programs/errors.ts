/** The agent program no longer has the session that it was asked to resume. */
export class SessionLost extends Error {}
