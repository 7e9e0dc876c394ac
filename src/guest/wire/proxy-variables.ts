/** Where processes inside find the server's proxy. */
export const PROXY_HOST = '127.0.0.1'
export const PROXY_PORT = 3128

/** Set for a guest whose server listens there itself. Programs inside do not see it. */
export const SERVER_LISTENS_VARIABLE = 'THREADBOX_SERVER_LISTENS'

export const PROXY_URL = `http://${PROXY_HOST}:${PROXY_PORT}`
const direct = 'localhost,127.0.0.1,::1'

/** What makes programs use the proxy. curl reads only the small http_proxy, some programs only the large ones. */
export const proxyVariables: Readonly<Record<string, string>> = {
  HTTP_PROXY: PROXY_URL,
  HTTPS_PROXY: PROXY_URL,
  http_proxy: PROXY_URL,
  https_proxy: PROXY_URL,
  NO_PROXY: direct,
  no_proxy: direct,
  NODE_USE_ENV_PROXY: '1',
}
