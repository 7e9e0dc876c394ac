import { Component, type ReactNode } from 'react'
import { Problem } from './problem.tsx'

interface FenceProps {
  /** What cannot be shown, as the beginning of a sentence. */
  what: string
  /** Where the reader is: another place is tried anew. */
  place?: string
  children: ReactNode
}

/** Keeps what fails to be drawn, or loaded, to its own part of the page. React has this as a class only. */
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
    // The files of the page may have changed with the server: then it is loaded anew.
    return <Problem error={problem} {...(this.props.place !== undefined && { retry: () => location.reload() })} />
  }
}
