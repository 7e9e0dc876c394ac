/** What a program that asked for a connection is told instead, as an HTTP answer. */
export class Refusal extends Error {
  constructor(
    readonly status: 400 | 403 | 404 | 408 | 431 | 501 | 502 | 503 | 504,
    message: string,
  ) {
    super(message)
  }
}
