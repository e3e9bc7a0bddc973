/** Counts by fingerprint in bounded memory: what is used least is forgotten first. */

/** Slots of a new table; a power of two. */
const SLOTS_MIN = 256;

/**
 * A count above 0 for each of the most recently used keys. Keys are kept as 64-bit hashes in typed
 * arrays, 12 bytes a slot: two of a million keys are taken for one another once in 37 million runs.
 * At least `entriesMax` keys are remembered, at most twice as many: there are two generations, and
 * when the younger is full, the older one is forgotten.
 */
export class RecentCounts {
  readonly #entriesMax: number;
  #young = new Table(SLOTS_MIN);
  #old = new Table(SLOTS_MIN);

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  /** The key's count; 0 if it has none, or it was forgotten. */
  get(key: string): number {
    hashKey(key);
    const { high, low } = hashed;
    const count = this.#young.get(high, low);
    if (count > 0) return count;
    const before = this.#old.get(high, low);
    // Whoever is asked for is in use.
    if (before > 0) this.#put(high, low, before);
    return before;
  }

  /** Sets the key's count, which is above 0. */
  set(key: string, count: number): void {
    hashKey(key);
    this.#put(hashed.high, hashed.low, count);
  }

  /** Forgets everything. */
  clear(): void {
    this.#young = new Table(SLOTS_MIN);
    this.#old = new Table(SLOTS_MIN);
  }

  #put(high: number, low: number, count: number): void {
    if (this.#young.entries >= this.#entriesMax && this.#young.get(high, low) === 0) {
      this.#old = this.#young;
      this.#young = new Table(SLOTS_MIN);
    }
    if (this.#young.entries * 2 >= this.#young.slots) this.#young = this.#young.doubled();
    this.#young.put(high, low, count);
  }
}

/** Open addressing with linear probing; never more than half full. */
class Table {
  readonly slots: number;
  entries = 0;
  readonly #high: Uint32Array;
  readonly #low: Uint32Array;
  readonly #counts: Uint32Array;

  constructor(slots: number) {
    this.slots = slots;
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#counts = new Uint32Array(slots);
  }

  get(high: number, low: number): number {
    return this.#counts[this.#find(high, low)]!;
  }

  put(high: number, low: number, count: number): void {
    const slot = this.#find(high, low);
    if (this.#counts[slot] === 0) this.entries++;
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#counts[slot] = count;
  }

  doubled(): Table {
    const table = new Table(this.slots * 2);
    for (let slot = 0; slot < this.slots; slot++) {
      const count = this.#counts[slot]!;
      if (count > 0) table.put(this.#high[slot]!, this.#low[slot]!, count);
    }
    return table;
  }

  /** The key's slot, or the empty one where it belongs. */
  #find(high: number, low: number): number {
    let slot = (low ^ high) & (this.slots - 1);
    while (
      this.#counts[slot] !== 0 && (this.#high[slot] !== high || this.#low[slot] !== low)
    ) slot = (slot + 1) & (this.slots - 1);
    return slot;
  }
}

/** What {@link hashKey} found: two numbers without an object a key. */
const hashed = { high: 0, low: 0 };

/** Two multiplicative hashes of 32 bits over the key's UTF-16 units, mixed at the end. */
function hashKey(key: string): void {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i);
    high = Math.imul(high ^ unit, 0x9e3779b1);
    low = Math.imul(low ^ unit, 0x5f356495);
    high ^= high >>> 15;
    low ^= low >>> 13;
  }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  hashed.high = high >>> 0;
  hashed.low = low >>> 0;
}
