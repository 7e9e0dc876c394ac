import { newId } from '../../db/id.ts'

/** A name for one request, for its answer and for everything that it causes. */
export const newRequestId = (): string => newId('req')
