/** How many deliveries are sent at once, of all teams together. */
const PLACES = 64
/** How many places a receiver that does not answer can hold. */
const PLACES_PER_WEBHOOK = 8

/** How many places are taken. */
export interface TakenPlaces {
  all: number
  /** Places of this webhook's team, including this webhook's. */
  team: number
  webhook: number
}

/**
 * Whether a webhook may send one more delivery now. A team takes places only while it has fewer than are free: one team
 * gets half of them, two a third each, and there is a place for a team that comes with its first delivery until 63 teams
 * have all their receivers slow. In its share, each webhook gets a place in the same way.
 */
export const mayTakePlace = ({ all, team, webhook }: TakenPlaces): boolean =>
  webhook < Math.min(PLACES_PER_WEBHOOK, (PLACES - all - team) / 2)

/** How many deliveries of one webhook are to be looked at, so that enough are there beside those that are being sent. */
export const LOOKED_AT = 2 * PLACES_PER_WEBHOOK
