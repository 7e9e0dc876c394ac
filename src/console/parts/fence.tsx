import { Component, type ReactNode } from 'react'
import { Problem } from './problem.tsx'

interface FenceProps {
  /** Names what cannot be shown, as the beginning of a sentence. */
  what: string
  /** The place of the page. At another place the part is tried again. */
  place?: string
  children: ReactNode
}

/** Keeps a failure to draw or load to its own part of the page. React offers this only to a class. */
export class Fence extends Component<FenceProps, { error?: Error | undefined }> {
  override state: { error?: Error | undefined } = {}

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error('an unknown fault') }
  }

  override componentDidUpdate({ place }: FenceProps): void {
    if (this.state.error && place !== this.props.place) this.setState({ error: undefined })
  }

  override render(): ReactNode {
    const { error } = this.state
    if (!error) return this.props.children
    const problem = new Error(`${this.props.what} cannot be shown: ${error.message}`)
    // The page's files may have changed with the server, so that the page is loaded again.
    return <Problem error={problem} {...(this.props.place !== undefined && { retry: () => location.reload() })} />
  }
}
