const DIRECTORY = '/etc/threadbox'

/** The authority's certificate alone, for programs that add it to the roots which they know. */
export const AUTHORITY_FILE = `${DIRECTORY}/authority.crt`
/** The roots of the sandbox and the authority, for programs that take one file in place of their own. */
export const BUNDLE_FILE = `${DIRECTORY}/ca-bundle.crt`
/** Says which authority the sandbox's stores have. */
export const MARK_FILE = `${DIRECTORY}/.authority`

/** What makes programs trust the authority: the system's store does not exist everywhere, and many bring roots of their own. */
export const trustVariables: Readonly<Record<string, string>> = {
  SSL_CERT_FILE: BUNDLE_FILE,
  CURL_CA_BUNDLE: BUNDLE_FILE,
  REQUESTS_CA_BUNDLE: BUNDLE_FILE,
  PIP_CERT: BUNDLE_FILE,
  GIT_SSL_CAINFO: BUNDLE_FILE,
  CARGO_HTTP_CAINFO: BUNDLE_FILE,
  AWS_CA_BUNDLE: BUNDLE_FILE,
  NIX_SSL_CERT_FILE: BUNDLE_FILE,
  GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: BUNDLE_FILE,
  CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE: BUNDLE_FILE,
  HTTPLIB2_CA_CERTS: BUNDLE_FILE,
  NODE_EXTRA_CA_CERTS: AUTHORITY_FILE,
  DENO_CERT: AUTHORITY_FILE,
}
