import { toJsxRuntime } from 'hast-util-to-jsx-runtime'
import { common, createLowlight } from 'lowlight'
import { Fragment, jsx, jsxs } from 'react/jsx-runtime'

const lowlight = createLowlight(common)

const byEnding = new Map(
  Object.entries({
    cjs: 'javascript',
    mjs: 'javascript',
    js: 'javascript',
    jsx: 'javascript',
    ts: 'typescript',
    tsx: 'typescript',
    py: 'python',
    rb: 'ruby',
    rs: 'rust',
    sh: 'bash',
    md: 'markdown',
    yml: 'yaml',
    html: 'xml',
    svg: 'xml',
    h: 'c',
    cc: 'cpp',
    hpp: 'cpp',
    cs: 'csharp',
    kt: 'kotlin',
  }),
)

/** Returns the language of a file's name; undefined when it is not known. */
function languageOf(path: string): string | undefined {
  const ending = path.slice(path.lastIndexOf('.') + 1).toLowerCase()
  const language = byEnding.get(ending) ?? ending
  return lowlight.registered(language) ? language : undefined
}

/** Shows a file's text in its language's colours. */
export default function Code({ path, text }: { path: string; text: string }) {
  const language = languageOf(path)
  return (
    <pre className="output">
      <code>{language ? toJsxRuntime(lowlight.highlight(language, text), { Fragment, jsx, jsxs }) : text}</code>
    </pre>
  )
}
