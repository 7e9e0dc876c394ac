/** An error, in the server's own words, with a way to try again where there is one. */
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
