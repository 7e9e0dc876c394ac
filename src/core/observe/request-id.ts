import { newId } from '../../db/id.ts'

/** Makes an id for one request, which its answer and everything that it causes carry. */
export const newRequestId = (): string => newId('req')
