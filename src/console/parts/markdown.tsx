import { memo, type ReactNode } from 'react'
import Markdown, { type Components } from 'react-markdown'
import rehypeHighlight from 'rehype-highlight'
import remarkGfm from 'remark-gfm'
import { Scroll } from './scroll.tsx'

/** A link sends no referrer. When an address was refused it is empty: its text stays, without a link. */
function Away({ to, children }: { to: unknown; children: ReactNode }) {
  if (typeof to !== 'string' || to === '') return <span>{children}</span>
  return (
    <a href={to} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}

/** An image becomes a link, so that the page loads nothing from other hosts. */
const components: Components = {
  a: ({ href, children }) => <Away to={href}>{children}</Away>,
  img: ({ src, alt }) => <Away to={src}>{alt || src}</Away>,
  // A wide table scrolls by itself.
  table: ({ children }) => (
    <Scroll label="A table">
      <table>{children}</table>
    </Scroll>
  ),
}

/**
 * Shows an agent's text. HTML in it is shown as text, and only addresses with http, https and mailto become links: both are
 * react-markdown's own rules.
 */
export default memo(function AgentMarkdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <Markdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[[rehypeHighlight, { detect: false, ignoreMissing: true }]]}
        components={components}
      >
        {text}
      </Markdown>
    </div>
  )
})
