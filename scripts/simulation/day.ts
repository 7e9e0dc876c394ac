/** The weight of each hour of a day, from midnight: two peaks at work, and little at night. */
const hours = [1, 1, 1, 1, 1, 2, 3, 5, 8, 11, 12, 11, 9, 10, 12, 12, 11, 9, 7, 6, 5, 4, 3, 2]

/** Returns when this many conversations begin, as parts of the day from 0 to 1, in order. */
export function beginnings(count: number): number[] {
  const total = hours.reduce((sum, each) => sum + each, 0)
  let hour = 0
  let before = 0
  return Array.from({ length: count }, (_, index) => {
    const at = ((index + Math.random()) / count) * total
    while (hour < hours.length - 1 && before + (hours[hour] ?? 0) < at) before += hours[hour++] ?? 0
    return (hour + (at - before) / (hours[hour] ?? 1)) / hours.length
  })
}
