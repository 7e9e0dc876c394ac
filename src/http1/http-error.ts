/** An error that is sent to a program as an HTTP answer with this status. The message goes with it. */
export class HttpError extends Error {
  constructor(
    readonly status: 400 | 403 | 404 | 408 | 421 | 431 | 501 | 502 | 503 | 504,
    message: string,
  ) {
    super(message)
  }
}
