import { expect, test } from 'bun:test'
import { defaultModel, findModel, nameModel, readProviders } from '../../src/gateway/providers.ts'
import { parseBaseUrl, parseProviders } from '../../src/gateway/settings.ts'

const read = (settings: object, environment: Record<string, string> = {}) =>
  readProviders({ providers: {}, ...settings }, environment)

test('a provider is here when its key is', () => {
  expect([...read({}).keys()]).toEqual(['ollama'])
  const keys = { ANTHROPIC_API_KEY: 'a', OPENAI_API_KEY: 'b', OPENROUTER_API_KEY: 'c', GEMINI_API_KEY: 'd' }
  expect([...read({}, keys).keys()]).toEqual(['anthropic', 'openai', 'gemini', 'openrouter', 'ollama'])
})

test('base URLs may have the version path or not', () => {
  const base = (url: string) => read({}, { ANTHROPIC_API_KEY: 'a', ANTHROPIC_BASE_URL: url }).get('anthropic')?.baseUrl
  expect(base('http://localhost:1')).toBe('http://localhost:1/v1')
  expect(base('http://localhost:1/v1/')).toBe('http://localhost:1/v1')
  expect(base('http://localhost:1/claude')).toBe('http://localhost:1/claude/v1')
  const local = (modelUrl: string) => read({ model: 'x/y', modelUrl }).get('x')?.baseUrl
  expect(local('http://localhost:1')).toBe('http://localhost:1/v1')
  expect(local('http://localhost:1/api/v2')).toBe('http://localhost:1/api/v2')
})

test('a model URL names a provider, with a key or without', () => {
  const settings = { model: 'my-lab/org/model', modelUrl: 'http://lab:8000/v1' }
  expect(read(settings).get('my-lab')).toEqual({ name: 'my-lab', wire: 'openai-chat', baseUrl: 'http://lab:8000/v1' })
  expect(read(settings, { MY_LAB_API_KEY: 'k' }).get('my-lab')?.key).toBe('k')
  expect(read({ ...settings, modelKey: 'm' }, { MY_LAB_API_KEY: 'k' }).get('my-lab')?.key).toBe('m')
})

test('providers of the configuration are checked', () => {
  const lab = { lab: { wire: 'anthropic', baseUrl: 'http://lab/v1', keyEnv: 'LAB' } }
  const providers = read({ providers: parseProviders(JSON.stringify(lab)) }, { LAB: 'k' })
  expect(providers.get('lab')).toEqual({ name: 'lab', wire: 'anthropic', baseUrl: 'http://lab/v1', key: 'k' })
  for (const bad of [
    [],
    { 'A B': lab.lab },
    { lab: { wire: 'x', baseUrl: 'http://lab' } },
    { lab: { wire: 'anthropic' } },
  ]) {
    expect(() => parseProviders(JSON.stringify(bad))).toThrow()
  }
  for (const url of ['lab', 'ftp://lab', 'http://user:secret@lab/v1', 'http://lab/?key=1']) {
    expect(() => parseBaseUrl(url)).toThrow()
  }
})

test('a model is found by its name, or the error says what is missing', () => {
  const providers = read({}, { OPENROUTER_API_KEY: 'k' })
  expect(findModel(providers, 'openrouter/anthropic/claude-sonnet-4.6').id).toBe('anthropic/claude-sonnet-4.6')
  expect(() => findModel(providers, 'openai/gpt-5.2')).toThrow('set OPENAI_API_KEY')
  expect(() => findModel(providers, 'vllm/x')).toThrow('--model-url')
  expect(() => findModel(providers, 'constructor/x')).toThrow('is not set up here')
  expect(() => findModel(providers, 'gpt-5.2')).toThrow('must be provider/model')
  expect(defaultModel(providers)).toBe('openrouter/anthropic/claude-sonnet-4.6')
  expect(defaultModel(read({}))).toBeUndefined()
  expect(nameModel('gpt-5.2', 'openai/gpt-5')).toBe('openai/gpt-5.2')
  expect(() => nameModel(undefined, undefined)).toThrow('There is no model')
})
