/** What a route's queue counts of its events. */

/** Why events were dropped. */
export type DropReason = "drop_oldest" | "drop_newest" | "full" | "given_up";

/** Events of one route, counted since the start. */
export interface QueueCounts {
  received: number;
  /** Of those received, the ones merged into another. */
  coalesced: number;
  delivered: number;
  dropped: Record<DropReason, number>;
  /** Events that were put back since their run crashed or aborted. */
  retried: number;
}

/** Nothing yet. */
export function noCounts(): QueueCounts {
  return {
    received: 0,
    coalesced: 0,
    delivered: 0,
    dropped: { drop_oldest: 0, drop_newest: 0, full: 0, given_up: 0 },
    retried: 0,
  };
}

/** What was dropped, whatever the reason. */
export function droppedOf({ dropped }: QueueCounts): number {
  return Object.values(dropped).reduce((sum, count) => sum + count, 0);
}

/** What was counted since `before`: routes come and go, and their sums only grow. */
export function growthOf(before: QueueCounts, now: QueueCounts): QueueCounts {
  return {
    received: now.received - before.received,
    coalesced: now.coalesced - before.coalesced,
    delivered: now.delivered - before.delivered,
    dropped: {
      drop_oldest: now.dropped.drop_oldest - before.dropped.drop_oldest,
      drop_newest: now.dropped.drop_newest - before.dropped.drop_newest,
      full: now.dropped.full - before.dropped.full,
      given_up: now.dropped.given_up - before.dropped.given_up,
    },
    retried: now.retried - before.retried,
  };
}
