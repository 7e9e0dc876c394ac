/** What tests use of the package, which brings no types. */
declare module 'ssh2' {
  interface Emitter {
    on(event: string, listener: (...values: never[]) => void): this
    once(event: string, listener: (...values: never[]) => void): this
  }
  interface Key {
    data: Buffer
  }
  interface AuthenticationContext {
    method: string
    key: Key
    signature?: Buffer
    blob?: Buffer
    hashAlgo?: string
    accept(): void
    reject(methods?: string[]): void
  }
  interface Stream {
    write(text: string): void
    exit(code: number): void
    end(): void
  }
  interface ServerClient {
    on(event: 'error', listener: () => void): this
    on(event: 'authentication', listener: (context: AuthenticationContext) => void): this
    on(event: 'session', listener: (accept: () => Session) => void): this
  }
  interface Session {
    on(event: 'exec', listener: (accept: () => Stream, reject: () => void, info: { command: string }) => void): this
  }
  const ssh2: {
    Server: new (
      options: { hostKeys: string[] },
      onClient: (client: ServerClient) => void,
    ) => {
      listen(port: number, host: string, listener: () => void): void
      address(): unknown
      close(): void
    }
    Client: new () => Emitter & { connect(options: object): void; destroy(): void }
    utils: {
      generateKeyPairSync(kind: string, options?: { bits: number }): { private: string; public: string }
      parseKey(data: Buffer): Error | { verify(data: Buffer, signature: Buffer, hash?: string): boolean }
    }
  }
  export default ssh2
}
