const DIRECTORY = '/etc/threadbox'

/** The authority's certificate alone, for programs that add it to their own roots. */
export const AUTHORITY_FILE = `${DIRECTORY}/authority.crt`
/** The sandbox's roots together with the authority, for programs that replace their own roots by one file. */
export const BUNDLE_FILE = `${DIRECTORY}/ca-bundle.crt`
/** Names the authority that the sandbox's stores contain. */
export const MARK_FILE = `${DIRECTORY}/.authority`

/**
 * Variables that make programs trust the authority: not every image has a system store, and many programs bring their own roots.
 */
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
