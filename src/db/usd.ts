/** An amount to the billionth of a dollar: sums of such amounts are the same in whatever order they were added. */
export const roundUsd = (usd: number): number => Math.round(usd * 1e9) / 1e9
