export { until } from '../../src/contract/until.ts'
