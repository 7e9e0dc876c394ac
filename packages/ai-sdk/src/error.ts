/** The error that the server answered with. */
export class ThreadboxError extends Error {
  override readonly name = 'ThreadboxError'

  constructor(
    message: string,
    /** The HTTP status; 500 when the answer had begun already. */
    readonly status: number,
    /** The server's error code, such as `sandbox_not_found`. */
    readonly code: string,
    /** The wrong field of the request, if the error names one. */
    readonly field?: string,
  ) {
    super(message)
  }
}

export const isCode = (error: unknown, ...codes: string[]): error is ThreadboxError =>
  error instanceof ThreadboxError && codes.includes(error.code)

/** Reads an error from an answer's body. */
export async function errorOf(response: Response): Promise<ThreadboxError> {
  const text = await response.text().catch(() => '')
  const { error, message } = parse(text)
  return new ThreadboxError(
    error?.message ?? message ?? `The server answered ${response.status}.`,
    response.status,
    error?.code ?? 'unknown',
    error?.field,
  )
}

interface ErrorBody {
  error?: { message?: string; code?: string; field?: string }
  message?: string
}

function parse(text: string): ErrorBody {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    return {}
  }
}
