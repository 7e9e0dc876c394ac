import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { createQueries } from './api/queries.ts'
import { App } from './app.tsx'

const root = document.getElementById('root')
if (!root) throw new Error('the page has no element for the console')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={createQueries()}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
