/**
 * Variable of a container that holds the token by which its guest recognises the bridge. Both erase it from their own environment;
 * no process inside can read the bridge's.
 */
export const TOKEN_VARIABLE = 'THREADBOX_TOKEN'
