export const PAGE = '/v1/docs'
export const SCRIPT = `${PAGE}/ui.js`
export const STYLE = `${PAGE}/ui.css`
export const DESCRIPTION = '/v1/openapi.json'

/** The paths that a browser loads to show the page, without a key. */
export const docsPaths: readonly string[] = [PAGE, SCRIPT, STYLE]
