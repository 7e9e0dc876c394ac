/** Counts the calls of the current step, to say when a client might take the step for its turn. */
export interface StepCalls {
  reset(): void
  begin(isClients: boolean): void
  end(isGood: boolean): void
  /**
   * Clients of version 5 ignore the mark of calls that the server runs: when each call of the last step has an output, they
   * post the whole conversation again, endlessly. So such calls are followed by a new step, even an empty one. Every version
   * posts after a step whose calls of the client have ended, with an error too: what they came to is known here already.
   */
  readonly isComplete: boolean
}

export function countStepCalls(): StepCalls {
  let [all, done, good, ofClient] = [0, 0, 0, 0]
  return {
    reset() {
      all = done = good = ofClient = 0
    },
    begin(isClients) {
      all += 1
      if (isClients) ofClient += 1
    },
    end(isGood) {
      done += 1
      if (isGood) good += 1
    },
    get isComplete() {
      return all > 0 && done === all && (good === all || ofClient > 0)
    },
  }
}
