/** The path of a file that is embedded in the executable. */
declare module 'swagger-ui-dist/swagger-ui-bundle.js' {
  const path: string
  export default path
}

declare module 'swagger-ui-dist/swagger-ui.css' {
  const path: string
  export default path
}
