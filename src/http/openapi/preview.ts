const parameter = (name: string) => ({ name, in: 'path' as const, required: true, schema: { type: 'string' as const } })

/** Previews take any method and any path below them. OpenAPI can express neither, so a text describes them. */
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
