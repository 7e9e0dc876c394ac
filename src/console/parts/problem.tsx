/** Shows an error in the server's own words, with a button to try again where that is possible. */
export function Problem({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div role="alert" className="problem row spread">
      <span>{error.message}</span>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}
