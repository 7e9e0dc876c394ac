import { Type } from '@sinclair/typebox'
import { answer, Bytes, noContent, type Operations } from './operation.ts'

const FileInfo = Type.Object(
  {
    name: Type.String(),
    path: Type.String(),
    type: Type.Union([Type.Literal('file'), Type.Literal('dir')]),
    size: Type.Integer(),
    mode: Type.Integer(),
    permissions: Type.String({ description: 'As ls prints them: `-rw-r--r--`.' }),
    owner: Type.String(),
    group: Type.String(),
    modifiedTime: Type.String({ format: 'date-time' }),
    symlinkTarget: Type.Optional(Type.String()),
  },
  { title: 'FileInfo' },
)

const FileContent = Type.Object({ path: Type.String(), content: Type.String() }, { title: 'FileContent' })

const WrittenFiles = Type.Object(
  { files: Type.Array(Type.Object({ path: Type.String(), size: Type.Integer() })) },
  { title: 'WrittenFiles' },
)

const FilesToWrite = Type.Union([
  Type.Object(
    { files: Type.Union([Type.Array(FileContent), Type.Record(Type.String(), Type.String())]) },
    { title: 'FileContents' },
  ),
  FileContent,
])

const bytes = { 'application/octet-stream': Bytes }

export const fileOperations: Operations = {
  'GET /v1/sandboxes/:sandboxId/files': {
    id: 'readFile',
    summary: 'Reads a file',
    description:
      'As JSON up to 10 MB; with `format=stream` or `blob` as bytes of any size; a directory with `format=tar`, the root without what is in /proc, /sys and /dev.',
    tag: 'Files',
    answers: {
      200: {
        description: 'The file.',
        content: { 'application/json': FileContent, ...bytes, 'application/x-tar': Bytes },
      },
    },
    errors: ['file_not_found', 'payload_too_large', 'sandbox_unavailable'],
  },
  'POST /v1/sandboxes/:sandboxId/files': {
    id: 'writeFiles',
    summary: 'Writes files',
    description: 'As JSON up to 10 MB; with `path` and `format=stream` or `blob` the body is one file of any size.',
    tag: 'Files',
    body: { content: { 'application/json': FilesToWrite, ...bytes } },
    answers: { 200: answer(WrittenFiles) },
    errors: ['sandbox_unavailable'],
  },
  'DELETE /v1/sandboxes/:sandboxId/files': {
    id: 'deleteFile',
    summary: 'Deletes a file, or a directory with all that it has',
    tag: 'Files',
    answers: { 204: noContent },
    errors: ['file_not_found', 'sandbox_unavailable'],
  },
  'GET /v1/sandboxes/:sandboxId/files/list': {
    id: 'listFiles',
    summary: 'Lists a directory',
    tag: 'Files',
    answers: { 200: answer(Type.Array(FileInfo)) },
    errors: ['file_not_found', 'sandbox_unavailable'],
  },
  'GET /v1/sandboxes/:sandboxId/files/info': {
    id: 'getFileInfo',
    summary: 'Describes a file or a directory',
    tag: 'Files',
    answers: { 200: answer(FileInfo) },
    errors: ['file_not_found', 'sandbox_unavailable'],
  },
  'GET /v1/sandboxes/:sandboxId/files/exists': {
    id: 'fileExists',
    summary: 'Says whether there is such a file or directory',
    tag: 'Files',
    answers: { 200: answer(Type.Boolean()) },
    errors: ['sandbox_unavailable'],
  },
  'POST /v1/sandboxes/:sandboxId/files/mkdir': {
    id: 'makeDirectory',
    summary: 'Makes a directory and its parents',
    tag: 'Files',
    answers: { 200: answer(Type.Boolean(), 'Whether it was made; false: it was there.') },
    errors: ['sandbox_unavailable'],
  },
  'POST /v1/sandboxes/:sandboxId/files/rename': {
    id: 'renameFile',
    summary: 'Renames a file or a directory',
    tag: 'Files',
    answers: { 200: answer(FileInfo) },
    errors: ['file_not_found', 'sandbox_unavailable'],
  },
}
