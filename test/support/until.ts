export { until } from '../../src/plugin-suite/until.ts'
