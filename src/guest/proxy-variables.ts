/** Where processes inside find the server's proxy. */
export const PROXY_HOST = '127.0.0.1'
export const PROXY_PORT = 3128

const url = `http://${PROXY_HOST}:${PROXY_PORT}`
const direct = 'localhost,127.0.0.1,::1'

/** What makes programs use the proxy. curl reads only the small http_proxy, some programs only the large ones. */
export const proxyVariables: Readonly<Record<string, string>> = {
  HTTP_PROXY: url,
  HTTPS_PROXY: url,
  http_proxy: url,
  https_proxy: url,
  NO_PROXY: direct,
  no_proxy: direct,
  NODE_USE_ENV_PROXY: '1',
}
