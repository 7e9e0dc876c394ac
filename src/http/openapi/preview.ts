const parameter = (name: string) => ({ name, in: 'path' as const, required: true, schema: { type: 'string' as const } })

/** Any method, and a path within a path: OpenAPI can name neither, so this says it in words. */
export const previewPaths = {
  '/v1/sandboxes/{sandboxId}/ports/{port}/{path}': {
    get: {
      operationId: 'showPreview',
      summary: 'A server in the sandbox: any method, also as a WebSocket',
      tags: ['Previews'],
      parameters: ['sandboxId', 'port', 'path'].map(parameter),
      responses: { default: { description: "The server's answer." } },
    },
  },
}
